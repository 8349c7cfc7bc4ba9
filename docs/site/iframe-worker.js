// Browsers make no workers from files on a disk. In pages opened from there, a hidden frame does a worker's work, so that
// the search runs. The theme's worker asks for this name.
if (location.protocol === "file:") {
  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<!doctype html>";
      this.frame = frame;
      this.inside = new Promise((resolve, reject) => {
        frame.addEventListener("load", () => {
          const inside = frame.contentWindow, script = inside.document.createElement("script");
          inside.postMessage = (data) => {
            const event = new MessageEvent("message", { data });
            this.onmessage?.(event);
            this.dispatchEvent(event);
          };
          inside.importScripts = (...urls) => Promise.all(urls.map((each) => load(inside, each)));
          script.src = url;
          script.onload = () => resolve(inside);
          script.onerror = reject;
          inside.document.body.append(script);
        }, { once: true });
      });
      document.body.append(frame);
    }

    postMessage(data) {
      this.inside.then((inside) => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }

    terminate() { this.frame.remove(); }
  }

  const load = (inside, url) => new Promise((resolve, reject) => {
    const script = inside.document.createElement("script");
    Object.assign(script, { src: url, onload: resolve, onerror: reject });
    inside.document.body.append(script);
  });
  window.Worker = window.IFrameWorker = IFrameWorker;
}
