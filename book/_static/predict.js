// Predictions: an answer, or a skip, opens what follows the box and is stored in this browser.
{
  const key = (name) => `subnorm.predict.${name}`;
  const SKIPPED = "skipped";

  /** A number as a reader types it: 0.5, 0,5, 1/2, 1e-3, 12 %. */
  const read = (text) => {
    const [top, below = "1"] = text.replace(",", ".").replace("−", "-").replace(/[\s%×x]/g, "").split("/");
    return top && below ? Number(top) / Number(below) : NaN;
  };
  const brief = (v) => String(Number(v.toPrecision(3))).replace("-", "−");

  /** The guess beside the truth, which is in the middle: the ends are at a tenth and ten times the truth, or at the guess if it is further. */
  function scale(guess, truth) {
    const alike = guess * truth > 0;
    const from = alike ? Math.log10(guess / truth) : guess - truth;
    const at = (v) => 150 + (v === truth ? 0 : (90 * from) / Math.max(Math.abs(from), alike ? 1 : 0));
    const dot = (v, name, words, y) => `<circle class="${name}" cx="${at(v)}" cy="32" r="6"/>` +
      `<text x="${at(v)}" y="${y}" text-anchor="middle">${words} ${brief(v)}</text>`;
    return `<svg viewBox="0 0 300 60" aria-hidden="true"><path d="M20 32H280"/>${dot(guess, "guess", "you", 16)}${
      dot(truth, "truth", "it is", 56)}</svg>`;
  }

  function numberSaid(guess, truth) {
    if (guess === truth) return "Exactly.";
    const ratio = guess / truth;
    const far = truth !== 0 && (ratio > 2 || (ratio > 0 && ratio < 0.5)); // nothing is twice 0
    const close = Math.abs(ratio - 1) <= 0.1 ? "Close. " : "";
    const off = far ? `, ${brief(Math.max(ratio, 1 / ratio))} times too ${Math.abs(ratio) > 1 ? "large" : "small"}` : "";
    return `${close}You: ${brief(guess)}${off}. It is ${brief(truth)}.`;
  }

  // The box above opens all, as if skipped, but stores no answers.
  const reading = document.getElementById("just-read");

  for (const box of document.querySelectorAll("[data-predict]")) {
    const name = box.dataset.predict;
    const follows = document.querySelector(`.foretold[data-for="${name}"]`);
    const [field, status] = [box.querySelector("[data-truth]"), box.querySelector("[role=status]")];
    const sketch = box.dataset.kind === "curve" && follows.previousElementSibling.querySelector("figure");
    const [compare, skip] = [box.querySelector(".compare"), box.querySelector(".skip")];
    if (sketch) sketch.querySelector(".live-buttons").prepend(compare); // below the line that one draws
    const figure = follows.querySelector("figure.live");
    const play = figure && Object.assign(document.createElement("button"), { type: "button", className: "play", hidden: true });
    if (play) {
      play.textContent = figure.querySelector(".live-play") ? "Play it" : "Try it";
      skip.after(play);
      play.addEventListener("click", () => {
        figure.scrollIntoView({ block: "center" });
        figure.querySelector(".live-play")?.click();
      });
    }
    const kept = () => subnormStore((store) => store.getItem(key(name)));
    let drawn = !sketch || Boolean(kept()); // an untouched line is no guess
    for (const event of ["pointerdown", "input"]) {
      sketch && sketch.addEventListener(event, ({ target }) => { drawn ||= Boolean(target.closest(".drag, input")); });
    }

    /** Show what came of an answer; null takes it back. */
    function show(answer) {
      box.classList.toggle("answered", answer !== null);
      follows.hidden = false;
      if (answer === null) follows.setAttribute("hidden", "until-found");
      skip.textContent = answer === null ? "Skip: just show me" : "Predict again";
      compare.hidden = answer !== null;
      const options = box.dataset.kind === "choice" ? [...box.querySelectorAll("input")] : [];
      for (const radio of options) radio.checked = radio.value === answer;
      const chosen = options.find((radio) => radio.checked)?.closest("label");
      const right = chosen && "right" in chosen.dataset;
      const skimmed = reading?.checked && answer === SKIPPED && !kept();
      let said = [];
      if (right) said = ["Right."];
      else if (chosen) said = ["Not quite. ", ...box.querySelector(".reason").cloneNode(true).childNodes];
      const scaled = box.querySelector(".answer > svg"); // not one of a formula
      if (scaled) scaled.remove();
      if (field && answer !== null && answer !== SKIPPED) {
        const [guess, truth] = [Number(answer), read(field.dataset.truth)];
        field.value = brief(guess);
        said = [numberSaid(guess, truth)];
        status.insertAdjacentHTML("afterend", scale(guess, truth));
      } else if (field) {
        field.value = "";
        if (skimmed) said = [field.dataset.truth];
      }
      box.classList.toggle("skimmed", skimmed);
      box.classList.toggle("right", Boolean(right));
      box.classList.toggle("wrong", right === false);
      if (play) play.hidden = answer === null;
      if (sketch) sketch.dispatchEvent(new CustomEvent("compare", { detail: answer }));
      status.replaceChildren(...said);
    }

    function answer(value) {
      subnormStore((store) => store.setItem(key(name), value));
      show(value);
    }

    box.addEventListener("change", ({ target }) => { if (target.type === "radio") answer(target.value); });
    compare.addEventListener("click", () => {
      if (!drawn) sketch.querySelector(".live-say").textContent = "Draw first: drag the dashed line, or use its sliders.";
      else if (sketch) answer(JSON.stringify(JSON.parse(sketch.dataset.state).state));
      else {
        const guess = read(field.value) / (/%/.test(field.value) && !("percent" in field.dataset) ? 100 : 1);
        if (Math.abs(guess) <= field.dataset.most) answer(String(guess));
        else status.textContent = field.title;
      }
    });
    field?.addEventListener("keydown", ({ key: pressed }) => { if (pressed === "Enter") compare.click(); });
    skip.addEventListener("click", () => {
      if (!box.classList.contains("answered")) return answer(SKIPPED);
      subnormStore((store) => store.removeItem(key(name)));
      show(null);
    });
    const line = follows.nextElementSibling;
    if (line?.matches(".waits")) line.addEventListener("click", () => skip.click()); // for the mouse: Skip is the button
    follows.addEventListener("beforematch", () => answer(SKIPPED)); // found by the browser's search
    const begin = () => show(kept() ?? (reading?.checked ? SKIPPED : null));
    if (kept() || reading?.checked) begin();
    reading?.addEventListener("change", begin);
  }
}
