/* Charts of counts over time. */
const HOUR_MS = 3600000, DAY_MS = 24 * HOUR_MS;
const SPANS = {hour: {from: "day", ms: HOUR_MS, name: "hour"}, day: {from: "day", ms: DAY_MS, name: "24 hours"}, month: {from: "month", ms: 31 * DAY_MS, name: "31 days"}};
const BIN_MS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440].map(minutes => minutes * 60000);

/* A history document cut to a span and summed up in bins, as many as have a place and hold enough of `of`. */
function binned(history, span, width, of = () => Infinity, enough = 0) {
  if (history?.begin_ms == null) return null;
  const {ms} = SPANS[span], unit = history.unit_ms, end = (Math.floor(history.newest_ms / unit) + 1) * unit;
  const total = history.counts.decisions.length, from = Math.max(history.begin_ms, end - ms);
  const least = Math.max(unit, BIN_MS.find(size => ms / size <= width / 5) ?? DAY_MS);
  let bins = [];
  for (const size of BIN_MS.filter(size => size >= least && size <= ms / 8)) {
    const first = Math.floor(from / size) * size;
    bins = Array.from({length: Math.ceil((end - first) / size)}, (_, i) => ({at: first + i * size, size, counts: {}}));
    for (const [name, list] of Object.entries(history.counts)) {
      for (const bin of bins) bin.counts[name] = 0;
      for (let i = Math.max(0, Math.round((from - history.begin_ms) / unit)); i < total; i++) {
        bins[Math.floor((history.begin_ms + i * unit - first) / size)].counts[name] += list[i];
      }
    }
    const held = bins.map(bin => of(bin.counts)).filter(n => n > 0).sort((a, b) => a - b);
    if (!held.length || held[held.length >> 1] >= enough) break;
  }
  return {bins, begin: Math.max(end - ms, Math.min(from, end - ms / 6)), end};
}
/* A few events say nothing about a rate: such a bin is a gap. */
const FEW = 5;
const rateOf = (bins, hits, of) => bins.map(bin => of(bin.counts) < FEW ? {...bin, ...wilson(0, 0), of: of(bin.counts)} : {...bin, ...wilson(hits(bin.counts), of(bin.counts))});
const runsOf = bins => bins.reduce((runs, bin) => { bin.value == null ? runs.push([]) : runs.at(-1).push(bin); return runs; }, [[]]).filter(run => run.length);

const two = n => String(n).padStart(2, "0");
const clock = at => (d => `${two(d.getHours())}:${two(d.getMinutes())}`)(new Date(at));
const day = at => new Date(at).toLocaleDateString("en", {day: "numeric", month: "short"});
const when = bin => bin.size >= DAY_MS ? day(bin.at) : `${day(bin.at)}, ${clock(bin.at)} to ${clock(bin.at + bin.size)}`;
function ticks(begin, end, width) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 7200, 10080].map(minutes => minutes * 60000);
  const step = steps.find(size => (end - begin) / size <= Math.max(2, width / 65)) ?? steps.at(-1);
  const shift = new Date(end).getTimezoneOffset() * 60000, found = [];
  for (let at = Math.ceil((begin - shift) / step) * step + shift; at < end; at += step) found.push([at, step >= DAY_MS ? day(at) : clock(at)]);
  return found;
}
function niceTop(most) {
  if (!(most > 0)) return 1;
  const unit = 10 ** Math.floor(Math.log10(most));
  return [1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10].map(n => n * unit).find(top => top >= most * 0.999) ?? 10 * unit;
}

class Chart {
  constructor(title, height = 150) {
    this.node = element("div", null, "chart");
    this.title = element("h3", title);
    this.now = element("b");
    this.svg = document.createElementNS(SVG, "svg");
    this.svg.setAttribute("role", "img");
    this.svg.setAttribute("height", height);
    this.height = height;
    const head = element("div");
    head.append(this.title, this.now);
    this.node.append(head, this.svg);
    this.svg.addEventListener("pointermove", event => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.point(null));
  }
  /* kind: "rate" (line, interval, target) or "bars"; text(bin) says what is under the pointer. */
  draw({kind, begin, end, bins, tau, top, format, text, label}) {
    this.svg.setAttribute("aria-label", label);
    if (!inView(this.node) && this.svg.firstChild) return;
    const width = Math.max(this.svg.clientWidth, 160), height = this.height, left = 44, bottom = height - 20, right = width - 2;
    const x = at => left + (right - left) * (Math.min(Math.max(at, begin), end) - begin) / (end - begin);
    const y = value => bottom - (bottom - 10) * Math.min(value, top) / top;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("height", height);
    this.svg.replaceChildren();
    const add = (...what) => drawn(this.svg, ...what);
    this.warmup(add, bins, x, bottom);
    for (const value of [0, top / 2, top]) {
      add("line", {class: value ? "grid" : "axis", x1: left, x2: right, y1: y(value), y2: y(value)});
      add("text", {x: left - 7, y: y(value) + 4, "text-anchor": "end"}, value ? format(value) : "0");
    }
    for (const [at, name] of ticks(begin, end, right - left)) if (x(at) < right - 14) add("text", {x: Math.max(x(at), left + 14), y: height - 4, "text-anchor": "middle"}, name);
    if (kind === "bars") this.bars(add, bins, x, y, bottom); else this.rate(add, bins, x, y);
    if (tau != null) {
      add("line", {class: "tau", x1: left, x2: right, y1: y(tau), y2: y(tau)});
      add("text", {class: "tau", x: left + 5, y: y(tau) - 5}, `target ${percent(tau)}`);
    }
    const cursor = add("line", {class: "cursor", y1: 6, y2: bottom, visibility: "hidden"});
    const dot = add("circle", {class: "cursor", r: 4, visibility: "hidden"});
    this.shown = {bins, x, y, left, right, text, cursor, dot: kind === "rate" ? dot : null};
  }
  warmup(add, bins, x, bottom) {
    const warm = bins.filter(bin => bin.counts.warmup > bin.counts.decisions / 2);
    if (!warm.length) return;
    const from = x(warm[0].at), to = x(warm.at(-1).at + warm.at(-1).size);
    add("rect", {class: "warmup", x: from, y: 10, width: Math.max(2, to - from), height: bottom - 10});
    if (to - from > 60) add("text", {class: "warmup", x: from + 6, y: 24}, "warm-up");
  }
  rate(add, bins, x, y) {
    for (const run of runsOf(bins)) {
      const edge = key => run.map(bin => `${x(bin.at + bin.size / 2).toFixed(1)} ${y(bin[key]).toFixed(1)}`);
      add("path", {class: "band", d: "M" + edge("upper").join("L") + "L" + edge("lower").reverse().join("L") + "Z"});
      add("path", {class: "line", d: "M" + edge("value").join("L") + (run.length === 1 ? "h3" : "")});
    }
  }
  bars(add, bins, x, y, bottom) {
    for (const bin of bins) {
      const at = x(bin.at), wide = Math.max(1, x(bin.at + bin.size) - at), gap = wide > 4 ? 1 : 0;
      const sum = bin.value + (bin.more ?? 0);
      if (bin.more) add("rect", {class: "more", x: at, width: wide - gap, y: y(sum), height: bottom - y(sum)});
      if (bin.value) add("rect", {class: "bar", x: at, width: wide - gap, y: y(bin.value), height: bottom - y(bin.value)});
    }
  }
  point(event) {
    const tip = document.getElementById("tip"), {bins, x, y, left, right, text, cursor, dot} = this.shown ?? {};
    tip.hidden = !event || !bins?.length;
    for (const node of [cursor, dot]) node?.setAttribute("visibility", tip.hidden ? "hidden" : "visible");
    if (tip.hidden) return;
    const box = this.svg.getBoundingClientRect(), at = event.clientX - box.left;
    const middle = bin => x(bin.at + bin.size / 2);
    const bin = bins.reduce((best, next) => Math.abs(middle(next) - at) < Math.abs(middle(best) - at) ? next : best);
    const place = Math.min(Math.max(middle(bin), left), right);
    for (const key of ["x1", "x2"]) cursor.setAttribute(key, place);
    dot?.setAttribute("cx", place);
    dot?.setAttribute("cy", y(bin.value ?? 0));
    dot?.setAttribute("visibility", bin.value == null ? "hidden" : "visible");
    tip.replaceChildren(element("b", when(bin)), ...text(bin).map(line => element("div", line)));
    const side = place > (left + right) / 2 ? -tip.offsetWidth - 12 : 12;
    tip.style.left = `${Math.max(8, Math.min(box.left + place + side, innerWidth - tip.offsetWidth - 8)) + scrollX}px`;
    tip.style.top = `${box.top + scrollY + 8}px`;
  }
}

/* Four charts of one history: what is held to the target, detection, alarms, events. */
class Charts {
  constructor(node, height) {
    this.node = node;
    this.empty = element("p", null, "empty");
    this.held = new Chart("", height);
    this.detection = new Chart("Detection rate", height);
    this.alarms = new Chart("Alarms", height);
    this.events = new Chart("Decisions a second", height);
    this.all = [this.held, this.detection, this.alarms, this.events];
    node.append(this.empty, ...this.all.map(chart => chart.node));
  }
  draw(history, span, held, tau) {
    const width = Math.max((this.node.clientWidth || 600) / (matchMedia("(max-width: 56rem)").matches ? 1 : 2), 260);
    const found = binned(history, span, width);
    this.empty.hidden = found != null;
    for (const chart of this.all) chart.node.hidden = found == null;
    if (found == null) return setText(this.empty, history ? "Nothing to draw: no event with a usable time has been decided." : "Reading the history…");
    const {begin, end} = found, per = size => size >= DAY_MS ? "a day" : size > HOUR_MS ? `per ${size / HOUR_MS} h` : size === HOUR_MS ? "an hour" : size > 60000 ? `per ${size / 60000} min` : "a minute";
    const share = (chart, name, {hits, of}, target, what) => {
      const bins = rateOf(binned(history, span, width, of, target == null ? 50 : 25 / target).bins, hits, of), all = wilson(...[hits, of].map(count => bins.reduce((n, bin) => n + count(bin.counts), 0)));
      const top = target == null ? 1 : Math.min(1, niceTop(Math.max(2 * target, 1.1 * Math.max(...bins.map(bin => bin.value ?? 0)))));
      setText(chart.title, name);
      setText(chart.now, percent(all.value));
      chart.draw({kind: "rate", begin, end, bins, tau: target, top, format: value => percent(value).replace(/\.0+ /, " "),
        text: bin => bin.value != null ? [`${percent(bin.value)} (95%: ${interval(bin)})`, `${whole(bin.hits)} of ${whole(bin.of)} ${what}`] : [bin.of ? `only ${whole(bin.of)} ${what}` : `no ${what}`],
        label: `${name} over time: ${percent(all.value)} over the last ${SPANS[span].name}, interval ${interval(all)}${target == null ? "" : `, target ${percent(target)}`}`});
    };
    share(this.held, held.name, held, tau, held.what);
    share(this.detection, "Detection rate", {hits: c => c.detections, of: c => c.targets}, null, "targets");
    const bars = (chart, name, value, more, format, text) => {
      const bins = found.bins.map(bin => ({...bin, value: value(bin), more: more(bin)})), sum = bins.reduce((n, bin) => n + bin.value, 0);
      const top = niceTop(Math.max(...bins.map(bin => bin.value + bin.more)));
      setText(chart.title, name);
      setText(chart.now, format(sum, bins));
      chart.draw({kind: "bars", begin, end, bins, top, format: value => value >= 1e4 ? compact(value) : String(+value.toPrecision(2)), text, label: `${name} over time: ${format(sum, bins)} over the last ${SPANS[span].name}`});
    };
    bars(this.alarms, `Alarms ${per(found.bins[0].size)}`, bin => bin.counts.alarms, bin => bin.counts.withheld, sum => whole(sum),
      bin => [plural(bin.counts.alarms, "alarm"), ...bin.counts.withheld ? [`${whole(bin.counts.withheld)} more withheld by the budget`] : []]);
    bars(this.events, "Decisions a second", bin => bin.counts.decisions / (Math.min(bin.at + bin.size, end) - Math.max(bin.at, begin)) * 1000, () => 0,
      (_, bins) => `${whole(bins.reduce((n, bin) => n + bin.counts.decisions, 0))} in all`, bin => [`${perSecond(bin.value)} a second`, plural(bin.counts.decisions, "decision")]);
  }
}

/* A rate against its target on one line: interval, value, target. */
function bullet(svg, rate, tau, height = 10) {
  svg.setAttribute("class", "bullet");
  svg.setAttribute("viewBox", `0 0 100 ${height}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("height", height);
  svg.replaceChildren();
  const top = tau == null ? 1 : Math.min(1, Math.max(2 * tau, 1.1 * (rate.value ?? 0))), x = value => 100 * Math.min(value, top) / top;
  drawn(svg, "rect", {class: "track", x: 0, y: height / 2 - 3, width: 100, height: 6, rx: 1});
  if (rate.value != null) {
    drawn(svg, "rect", {class: "band", x: x(rate.lower), y: height / 2 - 3, width: x(rate.upper) - x(rate.lower), height: 6});
    drawn(svg, "rect", {class: "now", x: Math.max(0, x(rate.value) - 0.7), y: 0, width: 1.4, height});
  }
  if (tau != null) drawn(svg, "line", {class: "tau", x1: x(tau), x2: x(tau), y1: 0, y2: height, "vector-effect": "non-scaling-stroke"});
}
/* A small line of the last day, with its target. */
function spark(svg, history, held, tau) {
  const width = Math.max(svg.clientWidth, 100), height = 26, found = binned(history, "day", width * 1.2, held.of, 25 / tau);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height);
  svg.replaceChildren();
  if (!found) return;
  const bins = rateOf(found.bins, held.hits, held.of), top = Math.max(2 * tau, ...bins.map(bin => bin.value ?? 0));
  const x = bin => (width - 3) * Math.min(1, Math.max(0, (bin.at + bin.size / 2 - found.begin) / (found.end - found.begin))), y = value => 24 - 22 * value / top;
  drawn(svg, "line", {class: "tau", x1: 0, x2: width, y1: y(tau), y2: y(tau)});
  for (const run of runsOf(bins)) drawn(svg, "path", {class: "line", d: "M" + run.map(bin => `${x(bin).toFixed(1)} ${y(bin.value).toFixed(1)}`).join("L") + (run.length === 1 ? "h3" : "")});
}
