/* Numbers, verdicts and elements. */
const whole = n => n == null ? "–" : Math.round(n).toLocaleString("en");
const compact = n => n == null ? "–" : n >= 1e4 ? new Intl.NumberFormat("en", {notation: "compact", maximumFractionDigits: 1}).format(n) : whole(n);
const short = n => n == null ? "–" : Math.abs(n) >= 1e5 || (n !== 0 && Math.abs(n) < 1e-3) ? n.toExponential(2) : String(+n.toPrecision(4));
const percent = r => r == null ? "–" : (100 * r).toFixed(r >= 0.1 ? 1 : r >= 0.001 ? 2 : 3) + " %";
const seconds = s => s == null ? "–" : s < 10 ? s.toFixed(1) + " s" : s < 120 ? Math.round(s) + " s" : s < 7200 ? Math.round(s / 60) + " min" : s < 172800 ? Math.round(s / 3600) + " h" : Math.round(s / 86400) + " days";
const perSecond = r => r == null ? "–" : r >= 10 ? whole(r) : r.toFixed(1);
const plural = (n, what) => `${whole(n)} ${what}${n === 1 ? "" : "s"}`;
const listed = (...parts) => parts.filter(part => part).join("; ");
const interval = rate => rate.value == null ? "" : `${percent(rate.lower)} to ${percent(rate.upper)}`;

function element(name, text, className) {
  const node = document.createElement(name);
  if (text != null) node.textContent = text;
  if (className) node.className = className;
  return node;
}
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
function setPill(node, [word, tone]) {
  setText(node, word);
  node.className = `pill ${tone}`;
}
const SVG = "http://www.w3.org/2000/svg";
function drawn(parent, name, attributes, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text != null) node.textContent = text;
  parent.append(node);
  return node;
}
function inView(node) {
  const box = node.getBoundingClientRect();
  return box.width > 0 && box.top < 1.5 * innerHeight && box.bottom > -innerHeight / 2;
}

function wilson(hits, of) {
  if (!of) return {value: null, lower: 0, upper: 1, hits, of};
  const z = 1.959964, c = (hits + z * z / 2) / (of + z * z), h = z / (of + z * z) * Math.sqrt(hits * (of - hits) / of + z * z / 4);
  return {value: hits / of, lower: Math.max(0, c - h), upper: Math.min(1, c + h), hits, of};
}
/* The same rate of several partitions. */
const added = (list, rate, span) => wilson(...["hits", "of"].map(key => list.reduce((sum, item) => sum + rate(item)[span][key], 0)));

/* Every verdict has a sign and a word: colour only repeats it. */
function verdict(rate, tau) {
  if (rate.value == null) return ["○ not known yet", "soft"];
  if (rate.lower > tau) return ["▲ above target", "bad"];
  if (rate.upper < tau) return ["▼ below target", "soft"];
  return ["● on target", "good"];
}
const PHASES = {live: ["● live", "good"], replaying: ["↻ replaying", "warn"], restoring: ["◔ restoring", "warn"],
  first_commit_due: ["◔ first commit due", "warn"], paused: ["■ paused", "bad"],
  committed: ["● committed", "good"], not_started: ["○ not started", "soft"], unreadable: ["■ unreadable", "bad"]};
const WARMING = ["◔ warming up", "warn"];

/* The rate that is held to tau: of all alarms, or of false ones; as a reading has it, and as it is counted over time. */
const BY_ALARM = {name: "Alarm rate", short: "Alarm rate", what: "observations", rate: p => p.alarm_rate, hits: c => c.alarms, of: c => c.decisions - c.warmup};
const BY_FPR = {name: "False-positive rate", short: "FPR", what: "non-targets", rate: p => p.fpr, hits: c => c.false_alarms, of: c => c.non_targets};
const heldBy = p => p?.control === "alarm_rate" ? BY_ALARM : BY_FPR;
