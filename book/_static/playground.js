// An editor that runs whatever the reader writes (subnorm_book/in_page/playground.py). Every starter keeps its own text.
{
  const box = document.querySelector("[data-playground]");
  const { python, starters } = JSON.parse(box.dataset.playground);
  const LONGEST = 8000; // characters of an address that mail and chat programs leave alone
  const MODEL = "stories.tar.gz";

  // Text as a part of an address, compressed: base64 with the two letters that addresses allow.
  const through = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
  const pack = async (text) => {
    const bytes = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"));
    return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  };
  const unpack = async (text) => {
    const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
    return new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw")));
  };

  class Playground extends SubnormBench {
    constructor(desk, names) {
      super(desk, box.querySelector(".workbench"), `subnorm.playground.${names[0]}`);
      for (const name of names) this.chip(name)?.addEventListener("click", () => this.choose(name));
      const last = subnormStore((store) => store.getItem("subnorm.playground"));
      if (names.length > 1) this.choose(names.includes(last) ? last : names[0]);
      box.querySelector("[data-download]").addEventListener("click", () => this.download());
      box.querySelector("[data-link]").addEventListener("click", () => this.link());
      addEventListener("hashchange", () => this.linked());
      this.linked();
    }

    chip(name) { return box.querySelector(`[data-starter="${name}"]`); }

    get needs() { return MODEL in (python.more ?? {}) && /\bstories\b/.test(this.code) ? [MODEL] : []; }

    start() { return super.start({ cell: "code", fresh: true }); }

    choose(name) {
      const { code, question } = starters[name];
      subnormStore((store) => store.setItem("subnorm.playground", name));
      this.open(`subnorm.playground.${name}`, code, question);
      this.chip(name).ariaPressed = "true";
    }

    // Show another text: the one that the reader made of it, if there is one.
    open(key, stub, question) {
      for (const chip of box.querySelectorAll("[data-starter]")) chip.ariaPressed = "false";
      Object.assign(this, { key, stub });
      this.set(subnormStore((store) => store.getItem(key)) ?? stub);
      const asked = box.querySelector("[data-question]");
      if (asked) asked.textContent = question;
      if (this.code !== this.field.defaultValue) this.desk.loadEditor(); // the page shows no other text in colours
      if (this.desk.busy) return;
      this.clear();
      this.state.textContent = "";
    }

    // The text of the address, if it has one.
    async linked() {
      const text = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
      if (!text) return;
      try {
        this.open(`subnorm.playground.${text}`, await unpack(text), "");
        this.state.textContent = "This code came with the link. Read it before you run it.";
      } catch {
        this.state.textContent = "The link is incomplete, so its code cannot be shown.";
      }
    }

    async link() {
      const text = await pack(this.code);
      const address = `${location.href.split("#")[0]}#code=${text}`;
      if (address.length > LONGEST) {
        this.state.textContent = `This code is too long for a link (${address.length} characters; at most ${LONGEST}). Download it instead.`;
        return;
      }
      history.replaceState(null, "", address);
      let copied = true;
      try { await navigator.clipboard.writeText(address); } catch { copied = false; }
      this.state.textContent = `${copied ? "Copied: the" : "Copy the"} address of this page, which now contains your code. Nothing was sent anywhere.`;
    }

    download() {
      const file = document.createElement("a");
      file.href = URL.createObjectURL(new Blob([this.code], { type: "text/x-python" }));
      file.download = `${this.key.split(".")[2].slice(0, 20)}.py`;
      file.click();
      setTimeout(() => URL.revokeObjectURL(file.href), 60_000);
    }
  }

  const bench = new Playground(new SubnormDesk({ more: {}, ...python }), Object.keys(starters));

  // The editor of a listing takes its place, and gives it back.
  const opener = document.querySelector("[data-opens='']"), listing = document.querySelector(".story");
  const open = (wanted) => {
    listing.hidden = wanted;
    box.hidden = !wanted;
    opener.ariaExpanded = String(wanted);
    opener.textContent = wanted ? "Back to the listing" : "Change it here";
  };
  opener?.addEventListener("click", () => {
    bench.desk.loadEditor();
    open(!listing.hidden);
    if (listing.hidden) bench.run.focus({ preventScroll: true });
  });
  document.querySelector("[data-opens=first]")?.addEventListener("click", () => {
    open(true);
    opener.scrollIntoView();
    bench.run.focus({ preventScroll: true });
  });
  const linked = () => { if (opener && location.hash.startsWith("#code=")) open(true); };
  addEventListener("hashchange", linked);
  linked();
  // A link to a line leads to that line of the editor.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('a[href^="#line-"]');
    if (!link || !listing?.hidden) return;
    event.preventDefault();
    const number = link.hash.slice(6);
    const { top, height } = box.querySelector(".cm-content, textarea").getBoundingClientRect();
    const line = (height / bench.code.split("\n").length) * (Number(number) - 1);
    scrollBy({ top: top + line - 0.3 * innerHeight, behavior: "instant" });
    // on a phone long lines take several: the editor, which draws what is near, has the place
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const there = [...box.querySelectorAll(".cm-lineNumbers .cm-gutterElement")]
        .find((e) => e.textContent === number && e.style.visibility !== "hidden");
      if (there) scrollBy({ top: there.getBoundingClientRect().top - 0.3 * innerHeight, behavior: "instant" });
    }));
  });
}
