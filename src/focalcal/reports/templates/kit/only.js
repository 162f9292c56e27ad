"use strict";
Kit.start();
