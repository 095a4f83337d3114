// What is wrong with the page that is open, as a list of sentences. `scheme` is what the reader prefers: light or dark.
// The first look reads the page to its end.
async (scheme, first) => {
  const faults = [];
  const short = (e) => e.outerHTML.slice(0, 100);
  const frame = () => new Promise(requestAnimationFrame);
  const root = document.documentElement;
  // Another width asks for another file of a picture, and a picture without a file has no size yet.
  const arrive = async () => {
    for (const image of document.images) {
      while (image.checkVisibility() && !image.complete) await new Promise((done) => {
        for (const kind of ["load", "error"]) image.addEventListener(kind, done, { once: true });
      });
    }
  };

  const read = async () => {
    // As a reader does: only then do lazy pictures arrive, and text may jump.
    let shift = 0;
    const add = (list) => list.forEach((entry) => { if (!entry.hadRecentInput) shift += entry.value });
    const observer = new PerformanceObserver((list) => add(list.getEntries()));
    observer.observe({ type: "layout-shift", buffered: true });
    for (let y = 0; y < root.scrollHeight; y += innerHeight) {
      scrollTo({ top: y, behavior: "instant" });
      await frame();
    }
    for (const image of document.images) image.loading = "eager"; // what a fast reader has passed by
    await arrive();
    await frame();
    await frame();
    add(observer.takeRecords());
    observer.disconnect();
    if (shift > 0.05) faults.push(`layout shift of ${shift.toFixed(3)}`);

    // A second reading, with all predictions answered.
    document.querySelectorAll("section.second-reading > details").forEach((fold) => { fold.open = true });
    document.querySelectorAll(".foretold[hidden]").forEach((part) => { part.hidden = false });
    scrollTo({ top: 0, behavior: "instant" });
  };
  if (first) await read();
  await frame();
  await frame(); // the first after another width chooses the files
  await arrive();
  document.getAnimations().forEach((fade) => fade.finish()); // what opens fades in

  const over = root.scrollWidth - innerWidth;
  if (over > 0) faults.push(`${over} px wider than the window`);
  if (root.dataset.theme !== scheme) faults.push(`${root.dataset.theme} for a reader who prefers ${scheme}`);
  const heads = [...document.querySelectorAll(".bd-header, .bd-header-article")].filter((e) => e.offsetHeight > 0);
  if (heads.length !== 1) faults.push(`${heads.length} visible headers`);

  const contents = document.querySelector(".bd-sidebar-secondary")?.getBoundingClientRect();
  const line = document.createRange(); // a paragraph can be wider than its words
  for (const e of contents?.width > 0 ? document.querySelectorAll("article > section > p") : []) {
    line.selectNodeContents(e);
    if ([...line.getClientRects()].some((box) => box.right > contents.left && box.bottom > contents.top && box.top < contents.bottom))
      faults.push(`under the contents: ${short(e)}`);
  }

  for (const e of document.querySelectorAll(".math .katex, article img, article svg[role=img]")) {
    const box = e.getBoundingClientRect();
    if (e.checkVisibility() && (box.width < 2 || box.height < 2 || e.naturalWidth === 0)) faults.push(`no size: ${short(e)}`);
  }
  for (const e of document.querySelectorAll("article > section > p .math .katex"))
    if (!e.checkVisibility()) faults.push(`hidden formula: ${short(e)}`);
  if (document.querySelector(".katex") && !document.fonts.check("16px KaTeX_Main"))
    faults.push("the font of the formulas is missing");

  if (scheme === "dark") {
    const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
    const pen = canvas.getContext("2d", { willReadFrequently: true });
    const brightness = (draw) => {
      pen.clearRect(0, 0, 1, 1);
      draw();
      const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
      return a < 128 ? 0 : (r + g + b) / 765; // what shines through is the page's own dark
    };
    for (const e of document.querySelectorAll("body, article, article :not(.katex *, svg *)")) {
      const ground = getComputedStyle(e).backgroundColor;
      if (ground === "rgba(0, 0, 0, 0)" || e.offsetWidth * e.offsetHeight < 400) continue;
      if (brightness(() => { pen.fillStyle = ground; pen.fillRect(0, 0, 1, 1) }) > 0.5) faults.push(`light box: ${short(e)}`);
    }
    const pictures = "article div.cell:not(.tag_keep-colours) img"; // from a file, the browser shows them to no script
    for (const e of location.protocol === "file:" ? [] : document.querySelectorAll(pictures)) {
      const mean = brightness(() => pen.drawImage(e, 0, 0, 1, 1));
      if ((getComputedStyle(e).filter.includes("invert") ? 1 - mean : mean) > 0.5) faults.push(`light picture: ${short(e)}`);
    }
  }
  return faults;
}
