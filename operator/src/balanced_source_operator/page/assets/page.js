// The status page. It draws what the operator says; every text goes through textContent.
const SVG = "http://www.w3.org/2000/svg";
const HOUR = 3600;
const RETRY = { first: 1000, most: 15000 };
const UNKNOWN = "unknown";

const byId = (id) => document.getElementById(id);
const state = { token: "", selected: null, sources: new Map(), source: null, splits: null, measure: "lag", stream: null };

// --- words -----------------------------------------------------------------------------------------------------

function number(value, digits = 0) {
  return value === null || value === undefined
    ? UNKNOWN : value.toLocaleString("en", { maximumFractionDigits: digits });
}

function counted(value, noun) {
  return `${number(value)} ${noun}${value === 1 ? "" : "s"}`;
}

function short(value) {
  if (value === null || value === undefined) return "?";
  return Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: value < 10 ? 1 : 0 }).format(value);
}

function rate(value) {
  return value === null || value === undefined ? UNKNOWN : `${number(value, value < 10 ? 1 : 0)}/s`;
}

function time(seconds) {
  return seconds === null || seconds === undefined ? "not yet" : new Date(seconds * 1000).toLocaleTimeString();
}

function arrow(now, then) {
  return now === then || then === null || then === undefined ? number(now) : `${number(now)} → ${number(then)}`;
}

function reader(value) {
  return value === null || value === undefined ? "no reader" : `reader ${value}`;
}

// --- elements --------------------------------------------------------------------------------------------------

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

function row(...cells) {
  return element("tr", {}, ...cells.map((cell) => element("td", {}, cell)));
}

function fill(table, rows) {
  byId(table).querySelector("tbody").replaceChildren(...rows);
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// --- the list of sources -----------------------------------------------------------------------------------------

const keyOf = (source) => JSON.stringify([source.namespace, source.name]);

function showSources() {
  const found = [...state.sources.values()].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  const focused = document.activeElement?.closest?.("#sources a")?.hash;
  fill("sources", found.map(sourceRow));
  byId("no-sources").hidden = found.length > 0;
  if (focused) [...document.querySelectorAll("#sources a")].find((link) => link.hash === focused)?.focus();
}

function sourceRow(source) {
  const link = element("a", { href: addressOf(source) }, source.name);
  const isReady = source.ready === "True" || source.ready === null;
  const ready = element("span", { class: isReady ? null : "bad" }, source.ready ?? UNKNOWN, isReady ? "" : `: ${source.reason}`);
  const splits = number(source.splits) + (source.pending ? ` (+${number(source.pending)} pending)` : "");
  const made = row(
    link, source.namespace || "this machine", ready, arrow(source.readers, source.desired), splits,
    arrow(source.acknowledged, source.epoch), number(source.lag), rate(source.rate),
  );
  if (state.selected && keyOf(source) === keyOf(state.selected)) made.setAttribute("aria-current", "true");
  return made;
}

function addressOf(source) {
  return `#${encodeURIComponent(source.namespace)}/${encodeURIComponent(source.name)}`;
}

function selectedByAddress() {
  const [namespace, name] = location.hash.slice(1).split("/");
  try {
    return name ? { namespace: decodeURIComponent(namespace), name: decodeURIComponent(name) } : null;
  } catch {
    return null;
  }
}

// --- one source --------------------------------------------------------------------------------------------------

function showSource() {
  const source = state.source;
  byId("source").hidden = !source;
  if (!source) return;
  setText(byId("source-title"), source.namespace ? `${source.name} in ${source.namespace}` : source.name);
  setText(byId("source-message"), [source.application, source.message].filter(Boolean).join(": "));
  byId("notes").replaceChildren(...source.notes.map((note) => element("li", { class: "bad" }, note)));
  showCharts(source);
  showTimeline(source.timeline);
  setText(byId("alignment"), alignmentText(source.alignment));
  showHosts(source.hosts);
  showConditions(source);
  if (!byId("plan-readers").value && source.desired) byId("plan-readers").value = source.desired;
  byId("plan").querySelector("button").disabled = !source.canPlan;
}

function showTimeline(entries) {
  fill("timeline", entries.map((entry) => row(
    entry.epoch, time(entry.at), time(entry.adoptedAt), entry.readers, number(entry.moved), number(entry.added),
    number(entry.removed), element("div", {}, entry.why, ...movesOf(entry)),
  )));
}

function movesOf(entry) {
  if (!entry.moves.length) return [];
  const all = entry.moved + entry.added + entry.removed;
  const key = `${entry.lineage}/${entry.epoch}`;
  const details = element("details", {}, element("summary", {}, `${entry.moves.length} of ${counted(all, "change")}`), moveList(entry.moves));
  details.open = opened.has(key);
  details.addEventListener("toggle", () => (details.open ? opened.add(key) : opened.delete(key)));
  return [details];
}
const opened = new Set();

function moveList(moves) {
  return element("ul", {}, ...moves.map((move) => element("li", {}, `${move.split}: ${reader(move.from)} → ${reader(move.to)}`)));
}

function alignmentText(alignment) {
  if (!alignment) return "This source is in no alignment group, or has not reported its event time yet.";
  const told = (watermark) => (watermark ? watermark.word ?? new Date(watermark.time).toLocaleString() : UNKNOWN);
  const parts = [];
  if (alignment.group) {
    parts.push(`Group ${alignment.group}. This source has read up to ${told(alignment.own)}; the others up to ` +
      `${told(alignment.others)}. It may be ahead by ${number(alignment.maxDrift / 1000)} s.`);
  }
  if (alignment.alignedTo !== null) parts.push(`Splits are read up to ${new Date(alignment.alignedTo).toLocaleString()}.`);
  return parts.join(" ");
}

function showHosts(hosts) {
  byId("hosts-section").hidden = hosts.length === 0;
  fill("hosts", hosts.map((host) => row(
    host.name, host.role, host.application, host.state, number(host.readers), number(host.splits),
    number(host.acknowledgedEpoch || null), number(host.lag),
  )));
}

function showConditions(source) {
  byId("no-conditions").hidden = source.conditions.length > 0 || source.namespace !== "";
  fill("conditions", source.conditions.map((found) => row(
    found.type, found.status, found.reason ?? "", found.lastTransitionTime ?? "", found.message ?? "",
  )));
}

// --- the heat map --------------------------------------------------------------------------------------------------

const levelClass = (level) => `level-${level ?? "unknown"}`;
const value = (cell) => (state.measure === "lag" ? number(cell.lag) : rate(cell.rate));

function cellText(cell, map, line) {
  const what = map.perSplit ? `${cell.split}, reader ${line.reader}` : `reader ${line.reader}, ${counted(line.splits, "split")}`;
  const moves = "movesFrom" in cell ? `, still read by reader ${cell.movesFrom}` : "";
  return `${what}: lag ${number(cell.lag)}, rate ${rate(cell.rate)}${moves}`;
}

function showHeat() {
  const map = state.splits;
  if (!map) return;
  const grid = byId("heat");
  const shape = JSON.stringify(map.rows.map((line) => [line.reader, line.cells.map((cell) => cell.split)]));
  if (grid.dataset.shape !== shape) buildHeat(grid, map, shape);
  const cells = [...grid.querySelectorAll(".cell")];
  const lines = map.rows.flatMap((line) => line.cells.map((cell) => [cell, line]));
  lines.forEach(([cell, line], index) => dressCell(cells[index], cell, map, line));
  const heads = [...grid.querySelectorAll("[role=rowheader]")];
  map.rows.forEach((line, index) => setText(heads[index], `reader ${line.reader} (${number(line.splits)})`));
  const pending = map.pending ? ` ${counted(map.pending, "split")} without a reader.` : "";
  setText(byId("heat-note"), (map.perSplit ? "" :
    `The source has more than ${counted(map.mostSplits, "split")}: each cell is a reader.`) + pending);
  showLegend(map.bounds[state.measure]);
  showCellText();
}

function buildHeat(grid, map, shape) {
  const focused = grid.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const lines = map.rows.map((line) => element("div", { role: "row", class: "row" },
    element("span", { role: "rowheader" }),
    element("div", { role: "presentation", class: "cells" }, ...line.cells.map((cell) => element("div", {
      role: "gridcell", class: "cell", tabindex: "-1", "data-key": cell.split ?? `reader ${line.reader}`,
    })))));
  grid.replaceChildren(...lines);
  grid.dataset.shape = shape;
  const cells = [...grid.querySelectorAll(".cell")];
  const again = cells.find((cell) => cell.dataset.key === focused);
  if (again ?? cells[0]) (again ?? cells[0]).tabIndex = 0;
  if (again) again.focus();
}

function dressCell(node, cell, map, line) {
  node.className = `cell ${levelClass(cell.levels[state.measure])}${"movesFrom" in cell ? " moving" : ""}`;
  setText(node, short(cell[state.measure]));
  node.setAttribute("aria-label", cellText(cell, map, line));
}

function showLegend(bounds) {
  const unit = state.measure === "lag" ? "" : "/s";
  const items = [[0, "0"], ...bounds.map((bound, index) => [index + 1, `up to ${short(bound)}${unit}`]), [null, "? unknown"]];
  byId("legend").replaceChildren(...items.map(([level, text]) => element("li", { class: `cell ${levelClass(level)}` }, text)));
}

function showCellText() {
  const cell = document.activeElement?.closest?.(".cell") ?? document.querySelector("#heat .cell:hover");
  setText(byId("heat-cell"), cell?.getAttribute("aria-label") ?? "");
}

function moveInHeat(event) {
  const cell = event.target.closest(".cell");
  if (!cell || event.ctrlKey || event.metaKey || event.altKey) return;
  const rows = [...byId("heat").querySelectorAll(".row")].map((line) => [...line.querySelectorAll(".cell")]);
  const y = rows.findIndex((cells) => cells.includes(cell));
  const x = rows[y].indexOf(cell);
  const target = {
    ArrowLeft: () => rows[y][x - 1], ArrowRight: () => rows[y][x + 1], Home: () => rows[y][0],
    End: () => rows[y].at(-1), ArrowUp: () => inRow(rows.slice(0, y).reverse(), x), ArrowDown: () => inRow(rows.slice(y + 1), x),
  }[event.key]?.();
  if (target === undefined) return;
  event.preventDefault();
  focusCell(target);
}

function inRow(rows, x) {
  const cells = rows.find((found) => found.length > 0);
  return cells?.[Math.min(x, cells.length - 1)];
}

function focusCell(cell) {
  for (const other of byId("heat").querySelectorAll('.cell[tabindex="0"]')) other.tabIndex = -1;
  cell.tabIndex = 0;
  cell.focus();
}

// --- charts --------------------------------------------------------------------------------------------------------

function showCharts(source) {
  const now = source.series.at(-1)?.[0] ?? 0;
  const epochs = source.timeline.map((entry) => entry.at);
  byId("chart-lag").replaceChildren(...chart("Lag", source.series.map(([at, lag]) => [at, lag]), now, epochs, number));
  byId("chart-rate").replaceChildren(...chart("Rate", source.series.map(([at, , speed]) => [at, speed]), now, epochs, rate));
}

function chart(name, points, now, epochs, text) {
  const known = points.map(([, y]) => y).filter((y) => y !== null);
  const top = Math.max(...known, 1);
  const caption = known.length
    ? `${name}: ${text(points.at(-1)[1])} now, ${text(Math.max(...known))} at most in the last hour`
    : `${name}: ${UNKNOWN} in the last hour`;
  const drawing = document.createElementNS(SVG, "svg");
  const shape = (tag, attributes) => {
    const made = document.createElementNS(SVG, tag);
    for (const [key, given] of Object.entries(attributes)) made.setAttribute(key, given);
    drawing.append(made);
  };
  for (const [key, given] of Object.entries({ class: "chart", viewBox: "0 0 1000 200", preserveAspectRatio: "none", role: "img" })) {
    drawing.setAttribute(key, given);
  }
  drawing.setAttribute("aria-label", caption);
  const place = ([at, y]) => [1000 - ((now - at) / HOUR) * 1000, 196 - (y / top) * 190];
  for (const at of epochs.filter((found) => now - found < HOUR && found <= now)) {
    const x = place([at, 0])[0];
    shape("line", { class: "epoch", x1: x, x2: x, y1: 0, y2: 200 });
  }
  for (const run of runs(points)) {
    const placed = run.map(place);
    if (placed.length > 1) shape("polyline", { points: placed.map((point) => point.join(",")).join(" ") });
    else shape("circle", { class: "alone", cx: placed[0][0], cy: placed[0][1], r: 4 });
  }
  return [element("figcaption", {}, caption), drawing];
}

// Unknown values interrupt the line: it must not look like 0, nor like the values around it.
function runs(points) {
  const found = [[]];
  for (const point of points) {
    if (point[1] === null) found.push([]);
    else found.at(-1).push(point);
  }
  return found.filter((run) => run.length > 0);
}

// --- plans ---------------------------------------------------------------------------------------------------------

async function showPlan(event) {
  event.preventDefault();
  const { namespace, name } = state.selected;
  const query = new URLSearchParams({ namespace, name, readers: byId("plan-readers").value });
  let answer;
  try {
    answer = await ask(`api/plan?${query}`);
  } catch {
    return byId("plan-result").replaceChildren(element("p", { class: "bad" }, "The operator does not answer. Try again."));
  }
  const found = await answer.json();
  if (!answer.ok) return byId("plan-result").replaceChildren(element("p", { class: "bad" }, found.error));
  const range = ([least, most]) => (least === most ? `${number(least)}` : `${number(least)}–${number(most)}`);
  const before = found.perReader.before;
  byId("plan-result").replaceChildren(
    element("p", {}, `${number(found.moved)} of ${counted(found.splits, "split")} would move` +
      (found.placed ? `, ${number(found.placed)} would get a first reader` : "") +
      (found.dropped ? `, ${number(found.dropped)} would not be read any more` : "") + "."),
    element("p", {}, `Splits per reader: ${range(before)} → ${range(found.perReader.after)}. ` +
      `Imbalance: ${number(found.imbalance.before, 2)} → ${number(found.imbalance.after, 2)} (1 is the best possible).`),
    element("p", {}, found.hosts.before > 1 || found.hosts.after > 1
      ? `Hosts: ${number(found.hosts.before)} → ${number(found.hosts.after)}. ` +
        `${counted(found.hosts.movedBetween, "split")} would move to another host.` : ""),
    moveList(found.moves),
    element("p", {}, found.more ? `… and ${number(found.more)} more.` : ""),
  );
}

// --- the stream ----------------------------------------------------------------------------------------------------

function ask(path, options = {}) {
  const headers = state.token ? { Authorization: `Bearer ${state.token}` } : {};
  return fetch(path, { ...options, headers, cache: "no-store", credentials: "same-origin" });
}

const receive = {
  sources({ changed, gone }) {
    for (const source of changed) state.sources.set(keyOf(source), source);
    for (const [namespace, name] of gone) state.sources.delete(keyOf({ namespace, name }));
    if (state.selected && gone.some(([namespace, name]) => keyOf({ namespace, name }) === keyOf(state.selected))) {
      state.source = null;
      showSource();
    }
    showSources();
    const missing = state.selected && !state.sources.has(keyOf(state.selected));
    setText(byId("connection"), missing ? `Live. There is no source ${state.selected.name} now.` : "Live");
  },
  source(found) {
    state.source = found;
    showSource();
  },
  splits(found) {
    state.splits = found;
    showHeat();
  },
};

async function follow() {
  state.stream?.abort();
  const stream = new AbortController();
  state.stream = stream;
  let pause = RETRY.first;
  while (!stream.signal.aborted) {
    const ended = await read(stream.signal).catch((error) => (error instanceof Refused ? error : null));
    if (stream.signal.aborted || state.stream !== stream) return;
    if (ended instanceof Refused && ended.status === 401) return login(ended.message);
    setText(byId("connection"), ended instanceof Refused ? ended.message : "The operator does not answer. Trying again …");
    if (ended instanceof Refused && [400, 403].includes(ended.status)) return;
    pause = ended === true ? RETRY.first : Math.min(pause * 2, RETRY.most);
    await new Promise((resume) => setTimeout(resume, pause));
  }
}

class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// Server-sent events over fetch: unlike EventSource, it can send the token in a header.
async function read(signal) {
  const query = state.selected ? `?${new URLSearchParams(state.selected)}` : "";
  const answer = await ask(`api/events${query}`, { signal });
  if (!answer.ok) throw new Refused(answer.status, (await answer.json()).error);
  state.sources.clear();
  byId("login").hidden = true;
  byId("main").hidden = false;
  setText(byId("connection"), "Live");
  const lines = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value: chunk } = await lines.read();
    if (done) return true;
    const events = (rest + chunk).split("\n\n");
    rest = events.pop();
    events.forEach(dispatch);
  }
}

function dispatch(text) {
  const fields = Object.fromEntries(text.split("\n").map((line) => line.split(/: ?(.*)/s, 2)));
  if (fields.event && Object.hasOwn(receive, fields.event)) receive[fields.event](JSON.parse(fields.data));
}

function login(reason) {
  byId("main").hidden = true;
  byId("login").hidden = false;
  setText(byId("login-reason"), reason);
  setText(byId("connection"), "Not signed in");
  byId("token").focus();
}

function select() {
  state.selected = selectedByAddress();
  state.source = null;
  state.splits = null;
  byId("heat").dataset.shape = "";
  byId("heat").replaceChildren();
  byId("plan-result").replaceChildren();
  byId("plan-readers").value = "";
  showSource();
  follow();
}

byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  state.token = byId("token").value.trim();
  byId("token").value = "";
  follow();
});
byId("measure").addEventListener("change", (event) => {
  state.measure = event.target.value;
  showHeat();
});
byId("plan").addEventListener("submit", showPlan);
byId("heat").addEventListener("keydown", moveInHeat);
byId("heat").addEventListener("focusin", showCellText);
byId("heat").addEventListener("focusout", () => setTimeout(showCellText));
byId("heat").addEventListener("mouseover", showCellText);
byId("heat").addEventListener("click", (event) => {
  const cell = event.target.closest(".cell");
  if (cell) focusCell(cell);
});
window.addEventListener("hashchange", select);
select();
