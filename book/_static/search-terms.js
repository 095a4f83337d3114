// The words that readers type, and the book's: for the list of sections (search-box.js), which loads this, and for the page
// of results (search.js) and the filters of rows (row-filter.js), where this comes first.
const subnormTerms = (() => {
  // The table of models has rows for these names, and says this of each.
  const MODELS = `llama, mistral, mixtral, ministral, gemma, qwen, olmo, gpt 1, gpt 2, gpt j, gpt neox, gpt oss, bert, roberta, bart, albert,
    deberta, modernbert, deepseek, phi, glm, kimi, minimax, nemotron, falcon, mamba, jamba, rwkv, granite, pythia, bloom, starcoder, smollm,
    bitnet, exaone, hunyuan, ernie, apertus, openelm, longcat, nanogpt, nanochat, ngpt, t5, whisper, wav2vec, clip, siglip, grok, command r,
    vit, swin v2, convnext, dinov2, dinov3, flux, stable diffusion`;
  const OF_A_MODEL = "norm, layer norm, rms norm, gain, bias, placement, pre ln, post ln, final norm, eps, qk norm, cast";
  // The page or section that explains a term. Hyphens, spaces, capitals, plurals and s/z spelling are ignored.
  const EXPLAINED = {
    "notebooks/01-why-depth-breaks": "deep network, vanishing gradient, exploding gradient, vanishing, exploding, plain stack",
    "notebooks/01-why-depth-breaks#one-number-decides": `initialization, he init, he initialization, kaiming init, kaiming initialization,
      xavier, xavier init, glorot init`,
    "notebooks/01-why-depth-breaks#deeper-and-worse": "degradation, degradation problem",
    "notebooks/01-why-depth-breaks#internal-covariate-shift": "internal covariate shift, covariate shift",
    "notebooks/01a-attention-in-twenty-lines": `attention, self attention, scaled dot product attention, divide by sqrt d, sqrt d, softmax,
      query, key, query key value, causal mask, grouped query attention, gqa, token`,
    "notebooks/02-residual-connections": `residual connection, residual, skip connection, skip, shortcut, shortcut
      connection, identity shortcut, residual block, residual branch, residual stream, residual learning, branch gain,
      skip path, gradient path, identity mapping, 2 to the power L paths`,
    "notebooks/02-residual-connections#what-it-would-say-after-every-block": "logit lens",
    "notebooks/02a-recipes-of-the-family": `resnet, residual network, pre activation, highway network, highway, densenet,
      u net, rwkv, parallel block, gpt j`,
    "notebooks/03-layer-normalization": `layer normalization, layer norm, norm, normalization, gain, shift, gamma, beta,
      eps, epsilon, invariance, key value cache, kv cache`,
    "notebooks/03a-layer-norm-backward": `layer norm backward, layer norm gradient, gradient of layer norm, backward pass, backward pass of layer
      norm, rstd, finite difference, gradient check, jacobian`,
    "notebooks/03b-batch-group-instance": `batch norm, batch normalization, group norm, group normalization, instance
      norm, instance normalization, running statistics, running mean`,
    "notebooks/04-rmsnorm": `rms norm, root mean square, root mean square norm, rms, rms normalization, upcast`,
    "notebooks/04a-mean-and-parity": `mean subtraction, partial rms norm, layer norm or rms norm, parity`,
    "notebooks/05-pre-ln-or-post-ln": `pre ln, post ln, pre norm, post norm, pre layer norm, post layer norm, pre ln or
      post ln, pre ln vs post ln, placement, norm placement, add norm`,
    "notebooks/05a-gradients-by-placement": `deepnorm, deepnet, amplification, gradient by layer`,
    "notebooks/05b-warm-up": `warm up, learning rate warm up, learning rate, learning rate schedule, adam`,
    "notebooks/05c-rank-collapse": `rank collapse, oversmoothing, over smoothing`,
    "notebooks/06-the-block-assembled": `transformer block, transformer, block, encoder, decoder, cross attention, feed
      forward, feed forward network, ffn, mlp, swiglu, final norm, sublayer, language model, greedy decoding,
      temperature, last layer, output layer, output matrix, lm head, unembedding`,
    "notebooks/06-the-block-assembled#what-a-loss-reads-like": "nat, loss in nats",
    "notebooks/06a-attention-sublayer": `attention sublayer, scaled scores, multi head attention, multihead attention, dropout`,
    "notebooks/06b-ablation": `ablation, ablation study`,
    "notebooks/06c-pooling-heads": `pooling, pooling head, mean pooling, attention pooling`,
    "notebooks/06d-counting-parameters": `parameter, parameter count, number of parameters, counting parameters`,
    "notebooks/07-after-pre-ln": "after pre ln",
    "notebooks/07-after-pre-ln#the-norm-moves": "sandwich norm, sandwich ln, peri ln",
    "notebooks/07-after-pre-ln#a-gate-at-zero": "rezero, layerscale, layer scale",
    "notebooks/07-after-pre-ln#inside-attention-qk-norm": "qk norm, query key normalization, query key norm",
    "notebooks/07-after-pre-ln#more-than-one-stream": "hyper connection",
    "notebooks/07-after-pre-ln#mhc-and-attention-residuals": "mhc, attention residual",
    "notebooks/07a-placements-one-by-one": `droppath, drop path, stochastic depth, skipinit, fixup, t fixup, admin, residual
      scaling, b2t, residual dual, mix ln, ngpt, dyt, dynamic tanh, adaln, adaln zero, swin, convnext`,
    "notebooks/07b-the-attention-logits": `soft cap, qk clip, z loss, attention sink, completep, multi head latent attention, mla`,
    "notebooks/08-how-fast-can-a-norm-be": `speed, timing, benchmark, bandwidth, memory bandwidth, memory bound, roofline,
      fused, fused norm, fused kernel, kernel, triton, gpu`,
    "notebooks/09-when-norms-go-wrong": `nan, inf, overflow, underflow, float16, fp16, half precision, bfloat16, bf16,
      precision, numerical stability, one pass variance, welford`,
    "notebooks/09a-the-bug-museum": `bug, bugs, bug museum, mistake, debugging`,
    "notebooks/09b-the-convention-map": `convention, conventions, unbiased variance, biased variance, ddof`,
    "notebooks/09d-when-something-breaks": `error, error message, warning, symptom, troubleshooting, stuck`,
    "notebooks/09c-quantisation-autocast-export": `quantization, int8, autocast, mixed precision, amp, export, onnx`,
    "notebooks/10-norms-at-work": `all reduce, tensor parallelism, sequence parallelism, batch invariant, batch invariance,
      determinism, sharded norm`,
    "notebooks/10a-outliers-and-rotations": `smoothquant, quarot, spinquant, massive activation, fp8, float8`,
    "notebooks/10b-fine-tuning": `lora, peft, adapter, muon, adamw, frozen batch norm`,
    "notebooks/10c-cut-and-looped": `pruning, layer pruning, remove layers, early exit, curse of depth, looped transformer, block influence, shortgpt`,
    "notebooks/10d-without-a-norm": `fold batch norm, batchnorm folding, normalizer free, nfnet, adaptive gradient clipping,
      agc, weight standardization, remove layer norm`,
    "book/models": `model, which norm, gpt 3, ${MODELS}`,
    "book/exercises": "exercise, exercise sheet, sheet, homework, problem set",
    "book/teaching": `teaching, teacher, lesson, lesson plan, syllabus, course plan, learning objective, exit question, exam, exam question, quiz, student,
      what students believe`,
    "book/grade-a-class": "grade, grading, grade a class, submission, hand in",
    "book/grading": "grading in full, autograder, copying, cheating, plagiarism, jupyterhub, colab",
    "book/myths": "myth, misconception, common misconception, common belief, often said",
    "book/playground": "playground, sandbox, try it, run python, run code",
    "book/cheat-sheet": "cheat sheet, cheatsheet, crib sheet",
    "book/questions": "question, faq, frequently asked question",
  };
  // One idea, in the book's spelling and in others. Spaces and hyphens may be missing, and a plural's s may be there.
  const SPELLINGS = {
    stuck: `plateau, plateaued, not go down, not going down, not decrease, not decreasing, not improve, not improving, not learn, not learning,
      not train, not training, not converge, not converging, not update, not updating, stays the same`,
    explodes: "blow up, blows up, blew up, blowing up",
    "each time": "every time, each run, every run, between runs, nondeterministic, non deterministic, not deterministic, not reproducible",
    garbage: "gibberish, nonsense, rubbish, random text, random token, random word",
    "Pre-LN": "pre norm, pre layer norm, pre normalization",
    "Post-LN": "post norm, post layer norm, post normalization",
    LayerNorm: "layer norm, layer normalization, layer normalisation",
    RMSNorm: "rms norm, rms normalization, rms layer norm, root mean square norm",
    BatchNorm: "batch norm, batch normalization, batch normalisation",
    GroupNorm: "group norm, group normalization, group normalisation",
    "GPT-2": "gpt 2",
    InstanceNorm: "instance norm, instance normalization, instance normalisation",
    "QK-norm": "qk norm, query key norm, query key normalization",
    "warm-up": "warm up, warming up",
    "residual connection": "skip connection, shortcut connection, identity shortcut, residual link",
    LayerScale: "layer scale",
    "fine-tuning": "fine tune, fine tuned, finetune",
    backward: "backprop, backpropagation, derivative, derivation",
    frozen: "freeze, freezing",
    slow: "slower, fast, faster, speed, speedup",
    swap: "convert, replace, exchange",
    sqrt: "square root, root, √",
    gain: "gamma, γ",
    shift: "beta, β",
    eps: "epsilon, ε",
    initialisation: "init, initialise, initialize, initialised, initialized, initialization",
    float16: "fp16, half precision",
    bfloat16: "bf16",
    float32: "fp32, single precision",
    float8: "fp8",
  };
  const GLUED = new RegExp(`\\b(${MODELS.split(/,\s+/).filter((name) => /^[a-z]{3,}$/.test(name)).join("|")})(?=\\d)`, "giu"); // Qwen3
  /** The words that a question has, whatever it is about. */
  const COMMON = new Set(`a after always an and are as at be between by can could different difference do does few for from get go has have
    how i if in into is it its make many me much my need needed not of on or should so some than that the there they this to use used using
    versus vs was we what when where which why will with work works would you about actually any best better explain explained good happen
    happens point purpose really tell too very s`.split(/\s+/));

  const source = (name) => name === "√" ? name : `(?<![\\p{L}\\p{N}_])${name.split(/[ -]/).join("[\\s-]*")}s?(?![\\p{L}\\p{N}_])`;
  const squeezed = (name) => name.toLowerCase().replace(/[\s-]/g, "");
  const every = Object.entries(SPELLINGS).flatMap(([name, others]) => [name, ...others.split(/,\s+/)].map((other) => [other, name]))
    .sort(([one], [other]) => other.length - one.length);
  const nameOf = new Map(every.map(([other, name]) => [squeezed(other), name]));
  const named = new RegExp(every.map(([other]) => source(other)).join("|"), "giu");
  /** A text with each spelling of a name replaced. */
  const renamed = (text, by) => text.replace(/\p{L}+n['’]t(?!\p{L})/gu, "not").replace(named, (typed) => by(nameOf.get(squeezed(typed)) ?? nameOf.get(squeezed(typed).replace(/s$/, ""))));
  /** A word without its ending, for what has the same stem: "vanishing" and "vanishes". */
  const stem = (word) => word.replace(/is(e|ed|es|ing|ations?)$/, "iz$1").replace(/(?<=.{3})(?:ations?|ions?|ing|ed|es|e|(?<!s|ia)s)$/, "");

  const words = (text) => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
  /** A text with the book's spelling of each name in it. */
  const respelt = (text) => renamed(text, (name) => name);
  /** The nearest of the words to one that is misspelt, by the letters to add, leave out, exchange or swap, but not the first;
      undefined if none is near. The wrong double letters are one fault: "lamma" for "llama". */
  function nearWord(word, all) {
    function distance(one, other) {
      let [above, row] = [[], [...other, ""].map((_, k) => k)];
      for (const [j, letter] of [...one].entries()) {
        const next = [j + 1];
        for (const [k, its] of [...other].entries()) {
          const swapped = k && letter === other[k - 1] && its === one[j - 1] ? above[k - 1] + 1 : Infinity;
          next.push(Math.min(row[k] + (its !== letter), row[k + 1] + 1, next[k] + 1, swapped));
        }
        [above, row] = [row, next];
      }
      return row.at(-1);
    }
    const single = (one) => one.replace(/(.)\1/g, "$1");
    const near = [...all].filter((other) => other[0] === word[0] && !COMMON.has(other))
      .map((other) => [other, Math.min(distance(word, other), distance(single(word), single(other)) + 1)]).sort((a, b) => a[1] - b[1])[0];
    return near?.[1] <= (word.length < 6 ? 1 : 2) ? near[0] : undefined;
  }

  const common = new Set([...COMMON].map(stem));

  return {
    EXPLAINED,
    MODELS,
    OF_A_MODEL,
    COMMON,
    words,
    /** The stems of a text's words in order, with one stem for all spellings of a name. */
    stems: (text) => words(renamed(text.replace(GLUED, "$1 "), (name) => ` ${squeezed(name)} `)).map(stem),
    /** Those that tell one text from others. */
    telling: (stems) => stems.filter((one) => !common.has(one)),
    /** The text with each word that is in none of the texts, and not right elsewhere, replaced by the nearest that is. */
    spelt(text, texts, right = () => false) {
      const all = new Set([...texts, ...nameOf.keys()].flatMap(words).filter((word) => /^\p{L}+$/u.test(word))); // no name of an object
      const known = (word) => respelt(word) !== word || [...all].some((other) => stem(other).startsWith(stem(word)));
      return text.replace(/[\p{L}\p{N}_]+/gu, (typed) => {
        const word = typed.toLowerCase();
        return (/^\p{L}{4,}$/u.test(word) && !COMMON.has(word) && !known(word) && !right(word) && nearWord(word, all)) || typed;
      });
    },
    /** The stems to look for: those of a question's own words, if it has any. */
    wanted(text) {
      const asked = words(renamed(text, (name) => ` ${name} `));
      const own = asked.filter((word) => !COMMON.has(word));
      return [...new Set(this.stems((own.length ? own : asked).join(" ")))];
    },
    respelt,
    /** Where a text has one of the stems, in whatever spelling: a pattern. */
    places: (stems) => new RegExp(stems.flatMap((own) => {
      const spelt = every.filter(([, name]) => stem(squeezed(name)) === own).map(([other]) => source(other));
      const short = stems.length > 1 && own.length < 3;
      return spelt.length ? spelt : [`(?<![\\p{L}\\p{N}_])${own}${short ? "(?!\\p{L})" : ""}`];
    }).join("|"), "giu"),
  };
})();
