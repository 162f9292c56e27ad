"use strict";
/* Words that appear beside what the pointer, the finger or the focus is on: whatever has data-tip. */
const Tips = (() => {
  let box = null;

  function place(target, event) {
    const around = target.getBoundingClientRect();
    const [x, y] = event && event.type.startsWith("pointer") ? [event.clientX, event.clientY] : [around.left + around.width / 2, around.bottom];
    const width = Math.min(box.offsetWidth, innerWidth - 16);
    const below = y + 18 + box.offsetHeight < innerHeight;
    box.style.left = `${Math.max(8, Math.min(x + 12, innerWidth - width - 8))}px`;
    box.style.top = `${below ? y + 16 : Math.max(8, y - box.offsetHeight - 12)}px`;
  }

  function show(event) {
    const target = event.target.closest?.("[data-tip]");
    if (!target) {
      hide();
      return;
    }
    box.textContent = target.dataset.tip;
    box.hidden = false;
    place(target, event);
  }

  function hide() {
    box.hidden = true;
  }

  function start() {
    box = document.createElement("div");
    box.className = "tip";
    box.setAttribute("aria-hidden", "true"); // the same words are the element's description
    box.hidden = true;
    document.body.append(box);
    ["pointerover", "pointermove", "focusin"].forEach((kind) => document.addEventListener(kind, show));
    ["focusout", "scroll"].forEach((kind) => document.addEventListener(kind, hide, { passive: true }));
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  }

  return { start };
})();
