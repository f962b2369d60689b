/* The page: asks for the status each second, and for histories as they are looked at. */
const POLL_MS = 1000, FRESH_MS = 5000, SPARK_MS = 60000, ROWS_A_TURN = 4;
const byId = id => document.getElementById(id);
const rows = new Map();
const samples = [];
let span = "day", whole_history = {}, latest = null, respondedAt = null, turn = 0;
const overTime = new Charts(document.querySelector("#time .charts"), 168);

async function get(path, wait_ms = 5000) {
  try {
    const response = await fetch(path, {signal: AbortSignal.timeout(wait_ms)});
    return response.ok ? await response.json() : null;
  } catch {
    return null;   // the server is away, or busy: ask again
  }
}

function tile(name, value, {pill, bar, gauge, lines = [], wide} = {}) {
  const box = element("div", null, wide ? "wide" : ""), title = element("dt", name), dd = element("dd", null);
  if (pill) { const node = element("span"); setPill(node, pill); title.append(node); }
  dd.append(element("div", value, "value"));
  if (bar != null) { const node = element("div", null, "progress"), fill = element("i"); fill.style.width = `${100 * bar}%`; node.append(fill); dd.append(node); }
  if (gauge) { const svg = document.createElementNS(SVG, "svg"); svg.setAttribute("aria-hidden", "true"); bullet(svg, ...gauge, 12); dd.append(svg); }
  dd.append(...lines.filter(line => line).map(line => element("small", line)));
  box.append(title, dd);
  return box;
}

function updateTiles(s, known, at) {
  const sum = f => known.reduce((total, p) => total + (f(p) ?? 0), 0), held = heldBy(known[0]);
  const taus = [...new Set(known.map(p => p.tau))], tau = Math.max(...taus);
  const window = added(known, held.rate, "window"), lifetime = added(known, held.rate, "lifetime");
  const detection = added(known, p => p.tpr, "window"), detected = added(known, p => p.tpr, "lifetime");
  const warming = known.filter(p => p.warming_up), cold = warming.length === known.length;
  const seen = warming.reduce((n, p) => n + p.warmup.seen, 0), of = warming.reduce((n, p) => n + p.warmup.of, 0);
  const lags = known.filter(p => p.lag_records != null), behind = known.filter(p => p.label_lag != null), labelsBehind = sum(p => p.label_lag);
  const perDay = known.filter(p => p.alarms_per_day != null), budget = sum(p => p.withheld.budget);
  const count = (...phases) => s.partitions.filter(p => phases.includes(p.phase)).length, busy = count("replaying", "restoring", "first_commit_due"), paused = count("paused", "unreadable");
  const since = rate => rate.of ? `${percent(rate.value)} of ${whole(rate.of)} since warm-up` : "", lag = lags.reduce((total, p) => total + p.lag_records, 0);
  byId("tiles").replaceChildren(
    cold
      ? tile(held.name, "Warming up", {wide: true, pill: WARMING, bar: of ? seen / of : 0, lines: [`${whole(seen)} of ${whole(of)} ${held === BY_ALARM ? "observations" : "labelled non-targets"} before ${known.length > 1 ? "all partitions raise alarms" : "the first alarm"}`]})
      : tile(held.name, percent(window.value), {wide: true, pill: verdict(window, tau), gauge: [window, tau],
        lines: [`target ${taus.map(percent).join(", ")}${window.of ? `; 95% interval ${interval(window)}` : ""}`, window.of ? `last ${whole(window.of)} ${held.what}` : "", since(lifetime), warming.length && `${warming.length} of ${plural(known.length, "partition")} warming up`]}),
    tile("Detection rate", percent(detection.value), {lines: [detection.of ? `last ${whole(detection.of)} targets` : cold ? "counted after the warm-up" : "no labelled targets yet", detected.of ? `${percent(detected.value)} since warm-up` : ""]}),
    tile("Alarms a day", perDay.length ? compact(perDay.reduce((n, p) => n + p.alarms_per_day, 0)) : "–", {lines: [`${whole(sum(p => p.alarms))} in all`, perDay.length ? "" : "a rate after an hour of events", budget ? `${whole(budget)} withheld by the budget` : ""]}),
    tile("Events/s", perSecond(speed(samples, at, sum(p => p.events))), {lines: [`${whole(sum(p => p.events))} in all`, sum(p => p.dead_letters) ? plural(sum(p => p.dead_letters), "dead letter") : ""]}),
    tile("Lag", lags.length ? compact(lag) : "–", {lines: [!lags.length ? "not known yet" : lag ? `records, up to ${seconds(Math.max(...lags.map(p => p.lag_s)))}` : "nothing waits", behind.length ? (labelsBehind ? `labels: ${plural(labelsBehind, "record")} behind` : "labels: none behind") : ""]}),
  );
  setText(byId("partitions-note"), listed(`${count("live", "committed")} of ${s.partitions.length} ${s.source === "group" ? "committed" : "live"}`, busy && `${busy} on the way`, count("not_started") && `${count("not_started")} not started`, paused && `${paused} ${s.source === "group" ? "unreadable" : "paused"}`,
    s.source === "group" ? "" : plural(s.restores, "restore"), s.session_restarts && plural(s.session_restarts, "session restart")));
  setText(byId("held-title"), held.name);
  return {held, tau};
}

function updateTrouble(s) {
  const trouble = [...s.problems ?? [], ...s.partitions.filter(p => p.phase === "paused").map(p => `Partition ${p.partition} is paused: ${p.reason}`),
    ...s.partitions.filter(p => p.phase === "unreadable").map(p => `Partition ${p.partition} cannot be read: ${p.reason}`),
    ...s.partitions.filter(p => p.stuck_transaction).map(p => `Partition ${p.partition}: a producer's transaction is stuck before offset ${p.end_offset}`)];
  const list = byId("trouble").querySelector("ul");
  byId("trouble").hidden = !trouble.length;
  document.title = `${trouble.length ? "■ " : ""}npstream ${s.group}`;
  if ([...list.children].map(node => node.textContent).join("\n") !== trouble.join("\n")) list.replaceChildren(...trouble.map(text => element("li", text)));
}

function update(s) {
  const at = Date.now(), known = s.partitions.filter(p => p.events != null), table = document.querySelector("#partitions table");
  latest = s;
  const who = s.source === "group" ? (s.members.length ? plural(s.members.length, "worker") : "no worker is running") : s.instance;
  setText(byId("who"), `group ${s.group} · topic ${s.topic} · ${who} · version ${s.version}`);
  byId("who").title = byId("who").textContent + (s.members?.length ? `: ${s.members.join(", ")}` : "");
  updateTrouble(s);
  const waiting = byId("waiting");
  waiting.hidden = s.partitions.length > 0;
  setText(waiting, s.source === "group" ? "Reading what the group has committed…" : s.started ? "No partition is assigned to this worker yet." : "Starting: the worker compiles its kernel, once on this machine, and then joins the group.");
  for (const id of ["time", "partitions"]) byId(id).hidden = !s.partitions.length;
  if (known.length) latest.view = updateTiles(s, known, at); else byId("tiles").replaceChildren();
  updateTiers(byId("tiers"), known, heldBy(known[0]));
  updateChallenger(byId("challenger"), known, heldBy(known[0]));
  for (const [number, row] of rows) if (!s.partitions.some(p => p.partition === number)) { row.node.remove(); rows.delete(number); }
  for (const p of s.partitions) if (!rows.has(p.partition)) rows.set(p.partition, new Row(p.partition, table, s.partitions.length === 1));
  for (const p of s.partitions) rows.get(p.partition).update(p, at);
  const order = [...rows.keys()].sort((a, b) => a - b).map(number => rows.get(number).node);
  order.forEach((node, i) => { if (table.tBodies[i] !== node) table.insertBefore(node, table.tBodies[i] ?? null); });
}

/* Histories: of all, of opened partitions, and the last day of those on the screen, a few in a turn. */
function drawOverTime() {
  if (!latest?.view) return;
  const {from} = SPANS[span], history = whole_history[from];
  overTime.draw(history, span, latest.view.held, latest.view.tau);
  const old = history?.newest_ms != null ? Date.now() - history.newest_ms : 0;
  setText(byId("time-note"), listed(latest.partitions.length > 1 ? "all partitions" : "", "by the events' own time", old > 600000 ? `the newest event is ${seconds(old / 1000)} old` : old < -600000 ? "ahead of this clock" : ""));
}
async function readWhole() {
  const {from} = SPANS[span], found = await get(`history?span=${from}`);
  if (found) whole_history[from] = {...found, read: Date.now()};
  drawOverTime();
}
async function readRow(row, from) {
  const found = await get(`history?span=${from}&partition=${row.number}`);
  row.read[from] = {history: found ?? row.read[from]?.history, at: Date.now()};
  drawRow(row);
}
function drawRow(row) {
  if (row.p?.events == null) return;
  if (row.read.day?.history) spark(row.spark, row.read.day.history, heldBy(row.p), row.p.tau);
  if (!row.details.hidden) row.charts.draw(row.read[SPANS[span].from]?.history, span, heldBy(row.p), row.p.tau);
}
function onOpened(row) {
  if (!row.details.hidden && row.p) { drawRow(row); readRow(row, SPANS[span].from).then(readBoundary); }
}
let isReading = false;
async function readHistories() {
  if (isReading) return;
  isReading = true;
  try { await readDue(); } finally { isReading = false; }
}
async function readDue() {
  const now = Date.now(), {from} = SPANS[span];
  if (now - (whole_history[from]?.read ?? 0) >= FRESH_MS) await readWhole();
  const shown = [...rows.values()].filter(row => row.p?.events != null && inView(row.node));
  const due = shown.flatMap(row => [["day", SPARK_MS], ...row.details.hidden ? [] : [[from, FRESH_MS]]].filter(([wanted, age]) => now - (row.read[wanted]?.at ?? 0) >= age).map(([wanted]) => [row, wanted]));
  for (const [row, wanted] of due.slice(0, ROWS_A_TURN)) await readRow(row, wanted);
}
async function readBoundary() {
  const shown = [...rows.values()].filter(row => !row.details.hidden && row.p?.d === 2 && !row.why && inView(row.figure));
  if (!shown.length) return;
  const row = shown[turn++ % shown.length], found = await get(`boundary?partition=${row.number}`);
  if (found) row.drawBoundary(found);
}

function choose(name) {
  span = name;
  for (const button of document.querySelectorAll(".choice button")) button.setAttribute("aria-pressed", button.dataset.span === span);
  drawOverTime();
  for (const row of rows.values()) if (!row.details.hidden) drawRow(row);
  if (respondedAt) readHistories();
}
for (const button of document.querySelectorAll(".choice button")) button.addEventListener("click", () => choose(button.dataset.span));
choose("day");
let resized = null;
addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(() => { drawOverTime(); rows.forEach(drawRow); }, 150); });
addEventListener("scroll", () => { clearTimeout(resized); resized = setTimeout(() => { drawOverTime(); rows.forEach(drawRow); }, 150); }, {passive: true});

function setConnection(text, tone) {
  setPill(byId("connection"), [text, tone]);
  document.querySelector("main").classList.toggle("stale", tone === "bad");
}
async function poll() {
  const status = await get("status", 3000);
  setTimeout(poll, POLL_MS);
  if (status == null) return setConnection(respondedAt == null ? "▲ no response, retrying" : `▲ disconnected for ${seconds((Date.now() - respondedAt) / 1000)}`, "bad");
  respondedAt = Date.now();
  setConnection("● connected", "good");
  update(status);
  await readHistories();
  await readBoundary();
}
poll();
