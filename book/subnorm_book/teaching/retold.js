// The chosen model tells its story, a few letters at a time. All texts have their places from the start.
{
  const figure = document.currentScript.parentElement;
  const [texts, notes] = ["texts", "notes"].map((name) => [...figure.querySelector(`.retold-${name}`).children]);
  const radios = [...figure.querySelectorAll("input")];
  const button = figure.querySelector("button");
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  let timer = null;

  const text = () => texts[radios.findIndex((radio) => radio.checked)];

  /** The whole text at once. */
  function stop() {
    clearInterval(timer);
    timer = null;
    for (const told of texts) told.textContent = told.textContent;
    button.textContent = "Tell it again";
  }

  function tell() {
    stop();
    radios.forEach(({ checked }, k) => [texts, notes].forEach((list) => list[k].classList.toggle("chosen", checked)));
    if (calm.matches) return;
    const [told, rest] = [document.createTextNode(""), document.createElement("span")];
    rest.className = "untold"; // transparent, and there for a screen reader
    rest.textContent = text().textContent;
    text().replaceChildren(told, rest);
    timer = setInterval(() => {
      const [next] = rest.textContent.match(/^\s*\S{0,4}/);
      told.data += next;
      rest.textContent = rest.textContent.slice(next.length);
      if (!rest.textContent) stop();
    }, 80);
    button.textContent = "Stop";
  }

  button.addEventListener("click", () => (timer ? stop() : tell()));
  figure.addEventListener("change", () => {
    tell();
    figure.querySelector("[role=status]").textContent = notes.find((note) => note.matches(".chosen")).textContent;
  });
  tell();
}
