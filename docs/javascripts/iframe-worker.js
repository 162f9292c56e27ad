// Search in pages that are opened from a folder: browsers start no worker there, so an inline frame runs its script.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      const load = (url) => new Promise((resolve, reject) => {
        const script = Object.assign(this.inside.document.createElement("script"), { src: url });
        script.onload = resolve;
        script.onerror = reject;
        this.inside.document.body.append(script);
      });
      this.inside.importScripts = (...urls) => urls.reduce((before, url) => before.then(() => load(url)), Promise.resolve());
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.loaded = load(address);
    }
    postMessage(data) {
      this.loaded.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
