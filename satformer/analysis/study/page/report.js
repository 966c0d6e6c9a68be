"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const gates = data.gates;
  const byId = (id) => document.getElementById(id);

  function element(name, properties = {}, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(properties)) {
      if (key in node) node[key] = value;
      else node.setAttribute(key, value);
    }
    node.append(...children);
    return node;
  }

  // Four significant digits; an en dash where there is no value.
  function show(value) {
    if (value === null || value === undefined) return "\u2013";
    if (typeof value !== "number" || Number.isInteger(value)) return String(value);
    return String(Number(value.toPrecision(4)));
  }

  // --- sortable tables ---------------------------------------------------------------------------------------------
  // columns: {title, value(row), text: true for words}
  function table(caption, columns, rows) {
    const body = element("tbody");
    const heads = columns.map((column) => element("th", { scope: "col", className: column.text ? "text" : "" }));
    function fill(sorted) {
      body.replaceChildren(...sorted.map((row) => element("tr", {}, ...columns.map((column) =>
        element("td", { className: column.text ? "text" : "" }, show(column.value(row)))))));
    }
    function sort(index) {
      const ascending = heads[index].getAttribute("aria-sort") !== "ascending";
      heads.forEach((head) => head.removeAttribute("aria-sort"));
      heads[index].setAttribute("aria-sort", ascending ? "ascending" : "descending");
      const value = columns[index].value;
      fill([...rows].sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === null || y === null) return (x === null) - (y === null);
        const order = typeof x === "number" ? x - y : String(x).localeCompare(String(y));
        return ascending ? order : -order;
      }));
    }
    heads.forEach((head, index) => {
      head.append(element("button", { type: "button", onclick: () => sort(index) }, columns[index].title));
    });
    fill(rows);
    return element("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": caption },
      element("table", {}, element("caption", {}, caption), element("thead", {}, element("tr", {}, ...heads)), body));
  }

  const column = (title, key) => ({ title, value: (row) => row[key] ?? null });
  const text = (title, key) => ({ title, value: (row) => row[key] ?? null, text: true });

  function seriesColumns() {
    return [
      column("mean", "mean"), column("std", "std"), column("exactly 0", "zero_share"),
      ...gates.thresholds.map((threshold, i) => ({ title: `< ${threshold}`, value: (row) => row.below[i] })),
      column("open", "open_share"), column("mean while open", "mean_while_open"),
      ...gates.quantiles.map((q, i) => ({ title: `q ${q}`, value: (row) => row.quantiles[i] })),
      { title: "|\u03b1 v1| / |v|", value: (row) => row.contribution.mean },
      { title: "share of v1", value: (row) => row.first_share.mean },
    ];
  }

  // --- categories --------------------------------------------------------------------------------------------------
  function categoryRows(part) {
    const row = (kind, name, estimates) => ({
      kind, name, mean: estimates.mean.value, low: estimates.mean.low, high: estimates.mean.high,
      open: estimates.open_share.value, open_low: estimates.open_share.low, open_high: estimates.open_share.high,
    });
    return [
      row("contrast", gates.categories.contrast.join(" minus "), part.contrast), row("all", "all tokens", part.all),
      ...Object.entries(part.groups).map(([name, estimates]) => row("group", name, estimates)),
      ...Object.entries(part.classes).map(([name, estimates]) => row("class", name, estimates)),
    ];
  }

  function addCategories(place) {
    const { categories } = gates;
    const parts = [["whole model", categories.model],
      ...categories.layers.map((layer) => [`layer ${layer.layer}`, layer]),
      ...categories.heads.map((head) => [`layer ${head.layer}, head ${head.head}`, head])];
    const select = element("select", { id: "category-part" },
      ...parts.map(([name], i) => element("option", { value: i }, name)));
    const holder = element("div");
    const fill = () => holder.replaceChildren(table("Token classes: " + parts[select.value][0],
      [text("name", "name"), text("kind", "kind"), column("mean gate", "mean"), column("low", "low"),
        column("high", "high"), column("open share", "open"), column("low", "open_low"), column("high", "open_high")],
      categoryRows(parts[select.value][1])));
    select.addEventListener("change", fill);
    fill();
    const sources = categories.sources.map((source) => ({ classes: source.classes.join(", "), source: source.source }));
    place.append(element("h3", {}, "Token classes"),
      element("p", {}, element("label", {}, "Of ", select)), holder,
      element("details", {}, element("summary", {}, "Where the classes come from"),
        table("Sources", [text("classes", "classes"), text("source", "source")], sources)),
      table("Tokens of each class", [text("class", "name"), text("group", "group"), column("tokens", "tokens")],
        categories.classes));
  }

  // --- all tables --------------------------------------------------------------------------------------------------
  function addGateTables(place) {
    place.append(element("h3", {}, "Heads"),
      table("Gates of each KV head", [column("layer", "layer"), column("head", "head"), ...seriesColumns()], gates.heads),
      element("h3", {}, "Layers"),
      table("Gates of each layer", [column("layer", "layer"), ...seriesColumns(), column("Gini", "gini"),
        column("top head", "top_head_share")], gates.layers));
    if (data.initialization && data.initialization.gates) {
      place.append(table("Before training", [column("layer", "layer"), ...seriesColumns()], data.initialization.gates.layers));
    }
    place.append(table("Concentration over heads", [column("heads", "heads"), column("share of the sum", "share"),
      column("if even", "even_share")], gates.concentration.top));
    if (gates.categories) addCategories(place);
  }

  function addAccessTables(place) {
    const { access } = data;
    if (access.layers.length > 0) {
      const mean = (list) => list.reduce((sum, value) => sum + value, 0) / list.length;
      place.append(table("Static value mix", [column("layer", "layer"), column("\u03bb1", "lambda1"),
        column("\u03bb2", "lambda2"),
        { title: "|\u03bb1 v1| / |\u03bb2 v|", value: (row) => mean(row.contribution.mean) },
        { title: "share of v1", value: (row) => mean(row.first_share.mean) }], access.layers));
    }
    if (access.readers.length > 0) {
      place.append(table("What reads the depth", [text("reader", "reader"),
        { title: "newest source", value: (row) => row.weights.mean[row.weights.mean.length - 1] },
        { title: "oldest source", value: (row) => row.weights.mean[0] },
        column("share of early sources", "early_share"), column("mean distance", "lookback")], access.readers));
    }
  }

  function addDynamics(place) {
    const rows = data.dynamics.filter((point) => point.gates).map((point) => ({
      step: point.step, ...point.gates.model,
      contrast: point.gates.categories ? point.gates.categories.model.contrast.mean.value : null,
    }));
    if (rows.length === 0) return;
    place.append(element("h3", {}, "Over training"),
      table("The whole model at each checkpoint",
        [column("step", "step"), ...seriesColumns(), column("contrast", "contrast")], rows));
  }

  // --- the text view -----------------------------------------------------------------------------------------------
  function addTextView() {
    const { pieces, classes, gates: layers } = gates.text;
    const layerSelect = byId("layer"), headSelect = byId("head"), readout = byId("readout"), tooltip = byId("tooltip");
    layerSelect.append(...layers.map((layer, i) => element("option", { value: i }, layer.layer)));
    headSelect.append(...layers[0].heads.map((_, i) => element("option", { value: i }, i)),
      element("option", { value: "mean" }, "mean of all"));
    let values = [], current = 0;

    const spans = pieces.map((piece, i) => element("span", { tabIndex: i === 0 ? 0 : -1, "data-token": i },
      piece.replaceAll("\n", "\u21b5\n")));
    byId("tokens").append(...spans);

    const where = () => `layer ${layers[layerSelect.value].layer}, ` +
      (headSelect.value === "mean" ? "mean of all heads" : `head ${headSelect.value}`);
    const describe = (i) => `${JSON.stringify(pieces[i])}${classes.length > 0 ? `, ${classes[i]}` : ""}, ` +
      `${where()}: gate ${values[i]}`;

    function colour(value, largest) {
      if (value === null || value === 0 || largest === 0) return "";
      return `rgba(var(--${value > 0 ? "positive" : "negative"}), ${(0.08 + 0.77 * Math.abs(value) / largest).toFixed(3)})`;
    }
    function paint() {
      const heads = layers[layerSelect.value].heads;
      values = headSelect.value === "mean"
        ? heads[0].map((_, i) => Number((heads.reduce((sum, head) => sum + head[i], 0) / heads.length).toPrecision(7)))
        : heads[headSelect.value];
      const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
      spans.forEach((span, i) => { span.style.backgroundColor = colour(values[i], largest); });
      byId("scale").textContent = `full colour: ${show(largest)}`;
      readout.textContent = spans.length > 0 ? describe(current) : "No tokens.";
      showListedTokens();
    }
    function choose(i) {
      spans[current].tabIndex = -1;
      current = i;
      spans[i].tabIndex = 0;
      readout.textContent = describe(i);
    }
    function showListedTokens() {
      const columns = [text("token", "piece"), column("mean gate", "mean"), column("count", "count")];
      const places = [["top", byId("top-tokens"), "Largest"], ["bottom", byId("bottom-tokens"), "Smallest"]];
      const layer = layers[layerSelect.value].layer;
      const found = gates.tokens.heads.find((head) => head.layer === layer && String(head.head) === headSelect.value);
      for (const [end, place, title] of places) {
        const rows = found ? found[end].map((token) => ({ ...token, piece: JSON.stringify(token.piece) })) : [];
        place.replaceChildren(found ? table(`${title} mean gate, ${where()}`, columns, rows)
          : element("p", {}, "Choose one head for its tokens."));
      }
    }
    function showTooltip(span) {
      const box = span.getBoundingClientRect();
      tooltip.textContent = describe(Number(span.dataset.token));
      tooltip.hidden = false;
      tooltip.style.left = `${Math.max(4, Math.min(box.left, innerWidth - tooltip.offsetWidth - 8))}px`;
      tooltip.style.top = box.bottom + 36 > innerHeight ? `${box.top - 34}px` : `${box.bottom + 6}px`;
    }
    const tokenOf = (event) => event.target.closest("[data-token]");
    byId("tokens").addEventListener("mouseover", (event) => {
      const span = tokenOf(event);
      if (span) { choose(Number(span.dataset.token)); showTooltip(span); }
    });
    byId("tokens").addEventListener("mouseleave", () => { tooltip.hidden = true; });
    byId("tokens").addEventListener("focusin", (event) => {
      const span = tokenOf(event);
      if (span) { choose(Number(span.dataset.token)); showTooltip(span); }
    });
    byId("tokens").addEventListener("focusout", () => { tooltip.hidden = true; });
    byId("tokens").addEventListener("keydown", (event) => {
      const next = { ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: spans.length - 1 }[event.key];
      if (next === undefined || next < 0 || next >= spans.length) return;
      event.preventDefault();
      spans[next].focus();
    });
    layerSelect.addEventListener("change", paint);
    headSelect.addEventListener("change", paint);
    byId("text-section").hidden = false;
    paint();
  }

  // --- page --------------------------------------------------------------------------------------------------------
  function addFacts() {
    const { checkpoint, data: source } = data;
    const facts = [["checkpoint", checkpoint.path], ["step", checkpoint.step], ["architecture", checkpoint.architecture],
      ["gate", gates ? gates.function : null], ["data", source.name], ["tokens", source.tokens.toLocaleString("en")],
      ["windows", `${source.windows.toLocaleString("en")} of ${source.seq_length}`], ["dtype", source.dtype]];
    byId("facts").append(...facts.filter(([, value]) => value !== null).map(([name, value]) =>
      element("div", {}, element("dt", {}, name), element("dd", {}, String(value)))));
  }

  function themeButton() {
    const button = byId("theme"), root = document.documentElement;
    const system = matchMedia("(prefers-color-scheme: dark)");
    const dark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
    const update = () => { button.setAttribute("aria-pressed", String(dark())); };
    button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; update(); });
    system.addEventListener("change", update);
    update();
  }

  themeButton();
  addFacts();
  if (gates && gates.text.pieces.length > 0) addTextView();
  const tables = byId("tables");
  if (gates) addGateTables(tables);
  if (data.access) addAccessTables(tables);
  if (data.dynamics) addDynamics(tables);
  if (!document.querySelector("#plots-section figure")) byId("plots-section").hidden = true;
})();
