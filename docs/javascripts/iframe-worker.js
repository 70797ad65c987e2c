// Makes the search work when the site is opened as files: browsers start no workers there.
// The script of a worker runs in a hidden frame instead. The theme looks for the name `IFrameWorker`.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inner = frame.contentWindow;
      this.inner.postMessage = (data) =>
        setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data })));
      const script = this.inner.document.createElement("script");
      script.src = new URL(url, document.baseURI);
      this.loaded = new Promise((resolve) => script.addEventListener("load", resolve));
      this.inner.document.body.append(script);
    }

    async postMessage(data) {
      await this.loaded;
      this.inner.dispatchEvent(new this.inner.MessageEvent("message", { data }));
    }
  };
  window.Worker = window.IFrameWorker;
}
