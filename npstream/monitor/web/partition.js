/* A partition: its row, and what the row opens. */
const FACTS = [
  ["Decisions", [["alarms", "Alarms"], ["withheld", "Withheld by the budget"], ["budget", "Budget left"], ["fpr", "FPR of labelled"], ["weighted", "FPR by review sample"], ["dead", "Dead letters"]]],
  ["Labels", [["labels", "Learned"], ["pending", "Waiting"], ["late", "Late, orphan"], ["corrected", "Corrected"], ["expired", "Expired"], ["labelLag", "Behind in the labels topic"]]],
  ["Model", [["threshold", "Threshold"], ["gamma", "Gamma"], ["learned", "Events learned"], ["warmup", "Warm-up"]]],
  ["Progress", [["offset", "Offset"], ["lag", "Lag"], ["checkpoint", "Checkpoint"], ["restored", "Restored in"]]],
];
const sparkSvg = () => {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "spark");
  svg.setAttribute("height", 26);
  svg.setAttribute("aria-hidden", "true");
  return svg;
};

/* Rates beside their targets, one line each: what is held, then columns of numbers. */
function ratesTable(node, rows, what, held, columns) {
  node.querySelector(".scroll")?.remove();
  const box = element("div", null, "scroll"), table = element("table", null, "rates"), head = element("tr"), body = element("tbody");
  const cell = (name, text, className) => {
    const node = element("td", text, className);
    if (name) node.dataset.name = name;
    return node;
  };
  head.append(...[what, "Target", held.short, ""].map(name => element("th", name)), ...columns.map(([name]) => element("th", name, "number")));
  for (const each of rows) {
    const {name, tau, rate} = each, row = element("tr"), title = element("th", name), gauge = cell("", null), svg = document.createElementNS(SVG, "svg"), pill = element("span");
    title.scope = "row";
    bullet(svg, rate.window, tau);
    setPill(pill, verdict(rate.window, tau));
    gauge.append(svg);
    const now = cell(held.short, `${percent(rate.window.value)} `, "wide");
    now.append(pill);
    row.append(title, cell("Target", percent(tau)), now, gauge, ...columns.map(([name, text]) => cell(name, text(each), "number")));
    body.append(row);
  }
  table.append(element("thead"), body);
  table.tHead.append(head);
  box.append(table);
  node.append(box);
}
const LEARNED = [["Since warm-up", r => percent(r.rate.lifetime.value)], ["Detection", r => percent(r.tpr.window.value)]];
const TIER_COLUMNS = [...LEARNED, ["Alarms", r => whole(r.sum(t => t.alarms))], ["Withheld", r => whole(r.sum(t => t.withheld.budget))], ["Threshold", r => r.of.length === 1 ? short(r.of[0].threshold) : "by partition"]];
const CHALLENGER_COLUMNS = [...LEARNED, ["Detection since warm-up", r => percent(r.tpr.lifetime.value)]];
function rateRow(name, of, held) {
  const both = rate => ({window: added(of, rate, "window"), lifetime: added(of, rate, "lifetime")});
  return {name, of, tau: of[0].tau, rate: both(held.rate), tpr: both(t => t.tpr), sum: f => of.reduce((n, t) => n + f(t), 0)};
}
/* Tiers of these partitions, and their challenger beside what is published: each where there is one. */
function updateTiers(box, known, held) {
  const names = [...new Set(known.flatMap(p => p.tiers.map(tier => tier.name)))];
  box.hidden = !names.length;
  if (names.length) ratesTable(box, names.map(name => rateRow(name, known.flatMap(p => p.tiers.filter(tier => tier.name === name)), held)), "Tier", held, TIER_COLUMNS);
}
function updateChallenger(box, known, held) {
  const both = known.filter(p => p.challenger), rivals = both.map(p => p.challenger), own = heldBy(rivals[0]);
  box.hidden = !both.length;
  if (both.length) ratesTable(box, [rateRow("Champion", both, held), rateRow(own === held ? "Challenger" : `Challenger, by ${own.short}`, rivals, own)], "Model", held, CHALLENGER_COLUMNS);
}

function speed(samples, at, events) {
  if (samples.length && events < samples.at(-1).events) samples.length = 0;
  samples.push({at, events});
  while (samples.length > 7) samples.shift();
  const first = samples[0];
  return at > first.at ? 1000 * (events - first.events) / (at - first.at) : null;
}

class Row {
  constructor(number, table, opened) {
    this.number = number;
    this.node = element("tbody", null, "row");
    this.node.dataset.partition = number;
    const row = element("tr"), cell = (className, name) => {
      const node = element("td", null, className);
      if (name) node.dataset.name = name;
      row.append(node);
      return node;
    };
    this.open = element("button", number, "open");
    this.open.type = "button";
    this.open.setAttribute("aria-label", `Partition ${number}`);
    cell("title").append(this.open);
    this.state = element("span", null, "pill soft");
    cell("state").append(this.state);
    const held = element("div", null, "held");
    this.held = element("span");
    this.gauge = document.createElementNS(SVG, "svg");
    this.gauge.setAttribute("aria-hidden", "true");
    held.append(this.held, this.gauge);
    this.heldCell = cell("heldcell", "False-positive rate");
    this.heldCell.append(held);
    this.spark = sparkSvg();
    cell("sparkcell", "Last day").append(this.spark);
    [this.detection, this.alarms, this.events, this.lag] = ["Detection", "Alarms/day", "Events/s", "Lag"].map(name => cell("number", name));
    this.details = element("tr", null, "details");
    const wide = element("td");
    wide.colSpan = 8;
    this.inside = element("div", null, "inside");
    wide.append(this.inside);
    this.details.append(wide);
    this.node.append(row, this.details);
    row.addEventListener("click", () => this.toggle(this.details.hidden));
    this.samples = [];
    this.read = {};         // span -> {at, history}
    this.toggle(opened);
    table.append(this.node);
  }
  toggle(open) {
    this.details.hidden = !open;
    this.open.setAttribute("aria-expanded", open);
    if (open && !this.charts) this.furnish();
    if (this.p) this.update(this.p, this.at, true);
    onOpened(this);
  }
  furnish() {
    this.reason = element("p", null, "reason");
    const charts = element("div", null, "charts"), facts = element("div", null, "facts");
    this.charts = new Charts(charts, 130);
    this.values = {};
    for (const [title, fields] of FACTS) {
      const box = element("div"), list = element("dl");
      for (const [key, name] of fields) {
        const line = element("div");
        this.values[key] = element("dd", "–");
        line.append(element("dt", name), this.values[key]);
        list.append(line);
      }
      box.append(element("h3", title), list);
      facts.append(box);
    }
    [this.tiers, this.challenger] = ["Tiers", "Challenger"].map(name => {
      const box = element("div");
      box.append(element("h3", name));
      return box;
    });
    this.figure = element("figure");
    this.canvas = element("canvas");
    this.caption = element("figcaption");
    this.canvas.setAttribute("role", "img");
    this.figure.append(element("h3", "Decision boundary"), this.canvas, this.caption);
    this.canvas.hidden = true;
    const lower = element("div", null, "lower");
    lower.append(this.figure, facts);
    this.inside.append(this.reason, charts, this.tiers, this.challenger, lower);
  }
  update(p, at, again = false) {
    this.p = p;
    this.at = at;
    const held = heldBy(p), warming = p.phase === "live" || p.phase === "committed" ? p.warming_up : false;
    setPill(this.state, warming ? WARMING : p.phase === "replaying" ? [`↻ replaying, ${whole(p.replay_left)} left`, "warn"] : PHASES[p.phase]);
    if (p.events != null) {
      const rate = held.rate(p).window;
      setText(this.held, percent(rate.value));
      this.gauge.parentNode.title = listed(interval(rate) && `95%: ${interval(rate)}`, `target ${percent(p.tau)}`);
      bullet(this.gauge, rate, p.tau);
      this.heldCell.dataset.name = held.name;
      setText(this.detection, percent(p.tpr.window.value));
      setText(this.alarms, p.alarms_per_day == null ? "–" : compact(p.alarms_per_day));
      if (!again) this.speed = speed(this.samples, at, p.events);
      setText(this.events, perSecond(this.speed));
      setText(this.lag, p.lag_records == null ? "–" : p.lag_records ? `${compact(p.lag_records)}, ${seconds(p.lag_s)}` : "none");
    }
    if (!this.details.hidden) this.updateDetails(p);
  }
  updateDetails(p) {
    setText(this.reason, p.reason ?? "");
    this.reason.hidden = !p.reason;
    const alone = p.events == null || rows.size === 1;   // of a single one the page has it all above
    this.charts.node.hidden = alone;
    this.values.alarms.closest(".facts").hidden = p.events == null;
    updateTiers(this.tiers, alone ? [] : [p], heldBy(p));
    updateChallenger(this.challenger, alone ? [] : [p], heldBy(p));
    this.figure.hidden = p.d !== 2;
    if (p.events == null) return;
    const labels = p.labels, shown = {
      alarms: whole(p.alarms),
      withheld: whole(p.withheld.budget),
      budget: p.budget_left == null ? "no limit" : `${Math.max(0, p.budget_left).toFixed(1)} alarms`,
      fpr: p.fpr.lifetime.of ? `${percent(p.fpr.lifetime.value)} of ${whole(p.fpr.lifetime.of)}` : "–",
      weighted: p.weighted?.fpr.value == null ? null : `${percent(p.weighted.fpr.value)} (${interval(p.weighted.fpr)})`,
      dead: whole(p.dead_letters),
      labels: whole(labels.with_event + labels.joined + labels.echoed + labels.early),
      pending: whole(p.pending),
      late: `${whole(labels.late)}, ${whole(labels.orphan)}`,
      corrected: p.correctable || labels.corrected ? `${whole(labels.corrected)}; ${whole(p.correctable)} still may be` : null,
      expired: whole(p.expired),
      labelLag: p.label_lag == null ? null : p.label_lag ? plural(p.label_lag, "record") : "none",
      threshold: short(p.threshold) + (p.pinned ? " ▲ pinned" : ""),
      gamma: short(p.gamma),
      learned: whole(p.learned) + (p.learning ? "" : " (frozen)"),
      warmup: p.warming_up ? `${whole(p.warmup.seen)} of ${whole(p.warmup.of)} ${heldBy(p).what}` : "done",
      offset: whole(p.next_offset),
      lag: p.lag_records == null ? "–" : p.lag_records ? `${plural(p.lag_records, "record")}, ${seconds(p.lag_s)}` : "none",
      checkpoint: p.checkpoint_left ? `${plural(p.checkpoint_left, "offset")} ago` : p.checkpoint_age_s ? `${seconds(p.checkpoint_age_s)} ago` : "covers all",
      restored: p.restore_s == null ? null : seconds(p.restore_s),
    };
    for (const [key, text] of Object.entries(shown)) {
      this.values[key].parentNode.hidden = text == null;
      setText(this.values[key], text ?? "");
    }
    this.why = p.phase === "paused" ? "Not drawn: the partition is paused." : p.learned ? "" : "Not drawn yet: the model has learned from no label.";
    if (this.canvas.hidden || this.why) this.notDrawn(this.why || "Not drawn yet: asking for it.");
  }
  notDrawn(text) {
    this.canvas.hidden = true;
    setText(this.caption, text);
  }
  /* The boundary: blue no alarm, orange with dots alarm, a line where the score meets the threshold. */
  drawBoundary(b) {
    this.canvas.hidden = false;
    const n = b.grid, size = 2 * Math.max(this.canvas.clientWidth, 200), step = size / (n - 1), context = this.canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement), colour = name => style.getPropertyValue(name).trim();
    this.canvas.width = this.canvas.height = size;
    const value = (i, j) => b.margins[j * n + i], px = i => i * step, py = j => size - j * step;
    const scale = b.margins.reduce((most, m) => Math.max(most, Math.abs(m)), 1e-9);
    for (let j = 0; j < n; j++) for (let i = 0; i < n; i++) {
      const m = value(i, j);
      context.globalAlpha = 0.15 + 0.55 * Math.sqrt(Math.abs(m) / scale);
      context.fillStyle = colour(m > 0 ? "--hot" : "--cold");
      const x = Math.round(px(i) - step / 2), y = Math.round(py(j) - step / 2);
      context.fillRect(x, y, Math.round(px(i) + step / 2) - x, Math.round(py(j) + step / 2) - y);
      context.globalAlpha = 1;
      if (m > 0 && i % 2 === 0 && j % 2 === 0) { context.fillStyle = colour("--text"); context.fillRect(px(i) - 1.5, py(j) - 1.5, 3, 3); }
    }
    context.strokeStyle = colour("--text");
    context.lineWidth = 3;
    context.beginPath();
    for (let j = 0; j < n - 1; j++) for (let i = 0; i < n - 1; i++) {
      const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]], cuts = [];
      corners.forEach(([a, c], k) => {
        const [d, e] = corners[(k + 1) % 4], u = value(a, c), v = value(d, e);
        if ((u > 0) !== (v > 0)) { const t = u / (u - v); cuts.push([px(a + t * (d - a)), py(c + t * (e - c))]); }
      });
      for (let k = 0; k + 1 < cuts.length; k += 2) { context.moveTo(...cuts[k]); context.lineTo(...cuts[k + 1]); }
    }
    context.stroke();
    const names = this.p.features ?? ["feature 1", "feature 2"];
    const share = b.margins.filter(m => m > 0).length / b.margins.length, [first, second] = b.ranges.map(r => r.map(short).join(" to "));
    setText(this.caption, `Dotted: alarm (${percent(share)} of the area). Across ${names[0]} ${first}, up ${names[1]} ${second}.`);
    this.canvas.setAttribute("aria-label", `Decision boundary after ${whole(b.t)} labels. ${this.caption.textContent}`);
  }
}
