// Python for a page: Pyodide in a worker, so that no loop blocks the page, and Stop can end it (in-page.js).
const { search } = new URL(location.href); // the version, so that no old part comes from the browser's cache
importScripts(`python/pyodide.js${search}`, `python/pyodide.asm.js${search}`);

const SITE = "/lib/python3.12/site-packages";

// The parts arrive one by one, already unpacked.
const parts = {};
const part = (name) => {
  if (!parts[name]) {
    parts[name] = {};
    parts[name].promise = new Promise((resolve) => { parts[name].resolve = resolve; });
  }
  return parts[name];
};

// The files of a tar: their paths and bytes.
const filesIn = function* (buffer) {
  const bytes = new Uint8Array(buffer);
  const text = (from, size) => new TextDecoder().decode(bytes.subarray(from, from + size)).replace(/\0.*/s, "");
  for (let at = 0; bytes[at]; ) {
    const path = `${SITE}/${[text(at + 345, 155), text(at, 100)].filter(Boolean).join("/")}`;
    const size = parseInt(text(at + 124, 12), 8);
    yield [path, bytes.subarray(at + 512, at + 512 + size)];
    at += 512 + Math.ceil(size / 512) * 512;
  }
};
const unpack = (FS, buffer) => {
  for (const [path, bytes] of filesIn(buffer)) {
    FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
    FS.writeFile(path, bytes);
  }
};

// NumPy's own WebAssembly is compiled while the interpreter starts: WebKit takes a second more for it afterwards. Python
// then asks for each module by its bytes, and no two have the same size.
const compiled = new Map();
const compile = (buffer) => Promise.all([...filesIn(buffer)].filter(([path]) => path.endsWith(".so"))
  .map(async ([, bytes]) => { compiled.set(bytes.length, await WebAssembly.compile(bytes)); }));
WebAssembly.Module = new Proxy(WebAssembly.Module, {
  construct: (Module, [bytes]) => compiled.get(bytes.byteLength) ?? new Module(bytes),
});

let pyodide;
const begin = async ({ versions, packs, setup, exercises, cells }) => {
  const module = await part("pyodide.asm.wasm.gz").promise; // compiled by the page, once
  WebAssembly.instantiateStreaming = async (_, imports) => ({ module, instance: await WebAssembly.instantiate(module, imports) });
  // Pyodide asks for three files. Nothing else is ever fetched.
  const lock = { info: { version: versions.pyodide, python: versions.python }, packages: {} };
  self.fetch = async (url) => {
    const name = String(url).split("/").at(-1);
    if (name === "pyodide-lock.json") return new Response(JSON.stringify(lock));
    if (name === "python_stdlib.zip") return new Response(await part("stdlib.zip.gz").promise);
    if (name === "pyodide.asm.wasm") return new Response();
    throw new TypeError("a page can fetch nothing");
  };
  const compiling = packs.map((name) => part(name).promise.then(compile));
  pyodide = await loadPyodide({ indexURL: new URL("python/", location.href).href });
  for (const name of packs) {
    unpack(pyodide.FS, await part(name).promise);
    delete parts[name];
  }
  await Promise.all(compiling);
  if (cells) return pyodide.pyimport("subnorm_book.in_page.cells").Cells(cells);
  return pyodide.pyimport("subnorm_book.in_page.session").Session(setup, exercises);
};

let session;
onmessage = async ({ data: { id, part: name, content, ...message } }) => {
  try {
    if (name) part(name).resolve(content);
    else if (message.begin) {
      session = await begin(message.begin);
      postMessage({ id, result: "{}" });
    } else if (message.unpack) { // a pack that comes later
      unpack(pyodide.FS, await part(message.unpack).promise);
      delete parts[message.unpack];
      pyodide.pyimport("sys").path_importer_cache.clear(); // else a new folder is not seen
      postMessage({ id, result: "{}" });
    } else if (message.complete) postMessage({ id, result: session.complete(message.complete) });
    else {
      const send = (output) => postMessage({ id, output });
      if (message.fresh) session.forget();
      const { cell, changed, then, code, check, parts } = message;
      postMessage({ id, result: session.run(cell, ...(changed ? [changed, then, send] : [code, check, send, parts])) });
    }
  } catch (error) { // Pyodide cannot go on after it
    console.error(error);
    postMessage({ id, fatal: String(error) });
  }
};
postMessage({ scripts: true });
