// The timeline: a canvas with a row per rank and a lane per kind of work. Tasks lie in typed arrays by start, so what is in
// view is found by halving, and tasks narrower than a pixel are drawn as one.

const computeHeight = 22, laneHeight = 11, laneGap = 2, rowGap = 10, axisHeight = 26;

// Why a task could not begin earlier, by the number of `Wait` (scenarios/report/timeline_view.h).
const waitTexts = [null, 'waited for its input: ', 'waited for its lane, which was busy with ', 'waited for the step before', 'waited for (by dates): '];

// Unpacks one lane (PackedView in scenarios/report/page.cpp).
function unpackedLane(lane, view, firstNumber) {
  const {count} = lane, numbers = unpacked(lane.data), perTick = view.seconds / view.ticks;
  const spans = {
    name: lane.name, computes: lane.computes, count, firstNumber,
    start: new Float64Array(count), end: new Float64Array(count), wait: new Float64Array(count),
    busy: new Float64Array(count), tasks: new Uint32Array(count).fill(1), critical: new Uint8Array(count),
    kind: new Uint16Array(count), head: new Uint32Array(count), tail: new Uint32Array(count),
    size: new Uint32Array(count), cause: new Int32Array(count), waitFor: new Uint8Array(count),
  };
  for (let i = 0, start = 0; i < count; i++) {
    start += numbers.next();
    spans.start[i] = start * perTick;
    spans.end[i] = (start + numbers.next()) * perTick;
    spans.wait[i] = numbers.next() * perTick;
    const flags = numbers.next();
    spans.critical[i] = flags & 1;
    spans.waitFor[i] = flags >> 2;
    spans.kind[i] = numbers.next();
    spans.head[i] = numbers.next();
    spans.tail[i] = numbers.next();
    spans.size[i] = numbers.next();
    const back = numbers.next();
    spans.cause[i] = back === 0 ? -1 : firstNumber + i - back;
    if (flags & 2) spans.tasks[i] = numbers.next();
    spans.busy[i] = flags & 2 ? numbers.next() * perTick : spans.end[i] - spans.start[i] - spans.wait[i];
  }
  return spans;
}

// The lane with neighbours that are shorter than a cell of time as one. It is drawn where a pixel is longer than two cells,
// so that a frame costs no more than the pixels of the canvas. `index`: the span of the lane, or -1 for several.
function coarsened(lane, cell, kinds) {
  const coarse = {start: [], end: [], busy: [], tasks: [], kind: [], critical: [], index: [], cell};
  const seconds = new Float64Array(kinds);
  for (let i = 0, next = 0; i < lane.count; i = next) {
    const place = Math.floor(lane.start[i] / cell), isShort = (at) => lane.end[at] - lane.start[at] < cell;
    seconds.fill(0);
    let most = lane.kind[i], busy = 0, critical = 0, end = 0;
    for (next = i; next < lane.count && (next === i || (isShort(i) && isShort(next) && Math.floor(lane.start[next] / cell) === place)); next++) {
      const kind = lane.kind[next];
      seconds[kind] += lane.busy[next];
      if (seconds[kind] > seconds[most]) most = kind;
      busy += lane.busy[next];
      critical |= lane.critical[next];
      end = Math.max(end, lane.end[next]);
    }
    coarse.start.push(lane.start[i]);
    coarse.end.push(end);
    coarse.busy.push(busy);
    coarse.tasks.push(next === i + 1 ? lane.tasks[i] : 2);
    coarse.kind.push(most);
    coarse.critical.push(critical);
    coarse.index.push(next === i + 1 ? i : -1);
  }
  coarse.count = coarse.start.length;
  return coarse;
}

// All lanes with their places, from the top.
function unpackedRows(view) {
  const lanes = [], perTick = view.seconds / view.ticks;
  let y = rowGap, number = 0;
  for (const row of view.rows) {
    const exposed = [], parts = unpacked(row.exposed);
    while (parts.more()) {
      const start = parts.next() * perTick;
      exposed.push([start, start + parts.next() * perTick]);
    }
    for (const packed of row.lanes) {
      const lane = unpackedLane(packed, view, number);
      lane.row = row;
      const cells = 1 << 12, few = 2 * cells;
      lane.coarse = lane.count > few ? coarsened(lane, view.seconds / cells, view.kinds.length) : null;
      lane.y = y;
      lane.height = lane.computes ? computeHeight : laneHeight;
      lane.exposed = lane.computes ? exposed : [];
      y += lane.height + laneGap;
      number += lane.count;
      lanes.push(lane);
    }
    y += rowGap;
  }
  return {lanes, height: y};
}

// The first of `count` ascending ends that is after `time`.
function firstEndAfter(count, endOf, time) {
  let low = 0, high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (endOf(middle) > time) high = middle;
    else low = middle + 1;
  }
  return low;
}
const firstAfter = (lane, time) => firstEndAfter(lane.count, (i) => lane.end[i], time);
const firstPart = (parts, time) => firstEndAfter(parts.length, (i) => parts[i][1], time);

function makeTimeline(section, place) {
  const view = section.view, {lanes, height} = unpackedRows(view);
  const box = element('div', 'timeline'), canvas = element('canvas'), spacer = element('div'), more = element('p', 'more');
  box.tabIndex = 0;
  box.setAttribute('role', 'application');
  box.setAttribute('aria-label', 'Timeline of the step. Arrows move, plus and minus zoom, Home shows all, N and P go along the critical path.');
  box.append(canvas, spacer);
  const brush = canvas.getContext('2d');
  const state = {from: 0, to: view.seconds, onlyPath: false, shown: null};
  let width = 0, seen = 0, gutter = 0, palette = {}, asked = false;

  const x = (time) => gutter + (time - state.from) / (state.to - state.from) * (width - gutter);
  const timeAt = (px) => state.from + (px - gutter) / (width - gutter) * (state.to - state.from);

  function resize() {
    width = box.clientWidth;
    gutter = width < 600 ? 84 : 148;
    seen = Math.min(height + axisHeight, Math.min(innerHeight * 0.72, 640));
    const dots = devicePixelRatio || 1;
    canvas.width = width * dots;
    canvas.height = seen * dots;
    canvas.style.width = width + 'px';
    canvas.style.height = seen + 'px';
    spacer.style.height = height + axisHeight - seen + 'px';
    brush.setTransform(dots, 0, 0, dots, 0, 0);
    redraw();
  }

  function readColours() {
    for (const name of ['paper', 'panel', 'ink', 'soft', 'line', 'idle', 'exposed', 'communication'])
      palette[name] = colour(name);
    palette.kinds = view.kinds.map((kind) => colour(kind.colour));
    const tile = element('canvas');
    tile.width = tile.height = 8;
    const pen = tile.getContext('2d');
    pen.fillStyle = palette.exposed;
    pen.fillRect(0, 0, 8, 8);
    pen.strokeStyle = palette.paper;
    pen.lineWidth = 2;
    for (const shift of [-4, 4, 12]) pen.moveTo(shift - 6, 10), pen.lineTo(shift + 6, -2);
    pen.stroke();
    palette.hatch = brush.createPattern(tile, 'repeat');
    redraw();
  }

  function redraw() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(); });
  }

  // What is narrower than a pixel is drawn as columns of a pixel. A column is as high as the share of it that is filled.
  function pixelColumns(kinds, visit) {
    const seconds = new Float64Array(kinds), perPixel = (state.to - state.from) / (width - gutter);
    let pixel = -1, critical = 0;
    const flush = () => {
      if (pixel < 0) return;
      let most = 0, sum = 0;
      for (let kind = 0; kind < kinds; kind++) {
        sum += seconds[kind];
        if (seconds[kind] > seconds[most]) most = kind;
      }
      visit(pixel, Math.min(1, sum / perPixel), most, critical);
      seconds.fill(0);
      pixel = -1;
      critical = 0;
    };
    const add = (left, kind, part, isCritical) => {
      const column = Math.floor(left);
      if (column !== pixel) flush();
      pixel = column;
      seconds[kind] += part;
      critical |= isCritical;
    };
    return {add, flush};
  }

  // visit(left, right, share of the height, kind, critical, span or -1)
  function laneRectangles(lane, visit) {
    // In quarters, so that most neighbours are as high as each other and drawn as one.
    const columns = pixelColumns(view.kinds.length, (pixel, share, kind, critical) =>
      visit(pixel, pixel + 1, Math.ceil(share * 4) / 4, kind, critical, -1));
    const perPixel = (state.to - state.from) / (width - gutter);
    const drawn = lane.coarse && perPixel > 2 * lane.coarse.cell ? lane.coarse : lane;
    for (let i = firstAfter(drawn, state.from); i < drawn.count && drawn.start[i] < state.to; i++) {
      const left = x(drawn.start[i]), right = x(drawn.end[i]);
      if (right - left < 1) {
        columns.add(left, drawn.kind[i], drawn.busy[i], drawn.critical[i]);
      } else {
        columns.flush();
        const share = drawn.tasks[i] > 1 ? drawn.busy[i] / (drawn.end[i] - drawn.start[i]) : 1;
        visit(left, right, share, drawn.kind[i], drawn.critical[i], drawn === lane ? i : drawn.index[i]);
      }
    }
    columns.flush();
  }

  // Rectangles of a frame by style, so that each style is set once. Neighbours of equal height become one.
  function paintBox() {
    const styles = new Map();
    return {
      add(style, alpha, left, top, wide, high) {
        const key = alpha + style;
        if (!styles.has(key)) styles.set(key, {style, alpha, boxes: []});
        const {boxes} = styles.get(key), last = boxes[boxes.length - 1];
        if (last && last[1] === top && last[3] === high && last[0] + last[2] === left) last[2] += wide;
        else boxes.push([left, top, wide, high]);
      },
      paint() {
        for (const {style, alpha, boxes} of styles.values()) {
          brush.fillStyle = style === 'hatch' ? palette.hatch : style;
          brush.globalAlpha = alpha;
          for (const [left, top, wide, high] of boxes) brush.fillRect(left, top, wide, high);
        }
        brush.globalAlpha = 1;
      },
    };
  }

  const clip = (px) => Math.max(gutter, Math.min(width, px));

  function drawIdle(lane, y, box) {
    const begin = clip(x(0));
    box.add(palette.idle, 1, begin, y, clip(x(view.seconds)) - begin, lane.height);
    const columns = pixelColumns(1, (pixel, share) => {
      const high = Math.round(lane.height * Math.round(share * 4) / 4);
      if (pixel >= gutter && high > 0) box.add(palette.exposed, 1, pixel, y + lane.height - high, 1, high);
    });
    for (let e = firstPart(lane.exposed, state.from); e < lane.exposed.length; e++) {
      const [start, end] = lane.exposed[e];
      if (start > state.to) break;
      const left = clip(x(start)), right = clip(x(end));
      if (right - left < 1) {
        columns.add(left, 0, end - start, 0);
      } else {
        columns.flush();
        box.add(right - left < 4 ? palette.exposed : 'hatch', 1, left, y, right - left, lane.height);
      }
    }
    columns.flush();
  }

  // What is drawn over the tasks, such as their labels, goes to `above`.
  function drawLane(lane, top, below, tasks, above) {
    const y = lane.y - top + axisHeight;
    if (lane.computes) drawIdle(lane, y, below);
    laneRectangles(lane, (left, right, share, kind, critical, i) => {
      const from = clip(left), to = clip(right);
      if (to <= from) return;
      const faded = state.onlyPath && !critical;
      const work = i >= 0 && lane.wait[i] > 0 ? Math.min(to, clip(x(lane.start[i] + lane.wait[i]))) : from;
      const edge = to - from > 3 ? 1 : 0;  // neighbours stay apart
      if (to > work)
        tasks.add(palette.kinds[kind], faded ? 0.18 : 1, work, y, to - work - edge, Math.round(lane.height * share));
      if (work > from) tasks.add(palette.kinds[kind], faded ? 0.06 : 0.2, from, y, work - from, lane.height);
      if (critical) above.marks.add(palette.ink, 1, work, y + lane.height - 3, Math.max(1, to - work - edge), 3);
      if (i >= 0 && lane.computes && to - from > 34)
        above.labels.push({lane, i, from, to, y, colour: faded ? palette.soft : isBright(palette.kinds[kind]) ? '#000' : '#fff'});
    });
  }

  function drawLabel({lane, i, from, to, y, colour}) {
    brush.save();
    brush.beginPath();
    brush.rect(from, y, to - from - 2, lane.height);
    brush.clip();
    brush.fillStyle = colour;
    brush.fillText(labelOf(lane, i), from + 4, y + 10);
    brush.restore();
  }

  function drawGutter(lane, top) {
    const y = lane.y - top + axisHeight;
    brush.fillStyle = palette.paper;
    brush.fillRect(0, y, gutter - 1, lane.height + laneGap);
    brush.fillStyle = lane.computes ? palette.ink : palette.soft;
    brush.font = lane.computes ? '600 13px system-ui, sans-serif' : '10px system-ui, sans-serif';
    brush.fillText(lane.computes ? rankText(lane.row) : lane.name, lane.computes ? 6 : 14, y + lane.height / 2, gutter - 18);
    brush.font = '11px system-ui, sans-serif';
  }

  function drawAxis() {
    brush.fillStyle = palette.paper;
    brush.fillRect(0, 0, width, axisHeight);
    const step = niceStep((state.to - state.from) / ((width - gutter) / 90));
    brush.fillStyle = palette.soft;
    brush.strokeStyle = palette.line;
    brush.textAlign = 'center';
    brush.beginPath();
    for (let at = Math.ceil(state.from / step) * step; at <= state.to; at += step) {
      const px = x(at);
      brush.fillText(secondsText(Math.abs(at) < step / 2 ? 0 : at), Math.min(px, width - 24), 12);
      brush.moveTo(px, axisHeight - 6);
      brush.lineTo(px, axisHeight);
    }
    brush.stroke();
    brush.textAlign = 'left';
    if (gutter > 100) brush.fillText('time in the step', 6, 12);
  }

  // From the end of the cause to the start of what waited for it.
  function drawCause(top) {
    const {lane, i} = state.shown, cause = spanNumber(lane.cause[i]);
    brush.strokeStyle = palette.ink;
    brush.lineWidth = 2;
    brush.strokeRect(x(lane.start[i]), lane.y - top + axisHeight, Math.max(2, x(lane.end[i]) - x(lane.start[i])), lane.height);
    if (cause) {
      brush.beginPath();
      brush.moveTo(x(cause.lane.end[cause.i]), cause.lane.y - top + axisHeight + cause.lane.height / 2);
      brush.lineTo(x(lane.start[i] + lane.wait[i]), lane.y - top + axisHeight + lane.height / 2);
      brush.stroke();
      brush.strokeRect(x(cause.lane.start[cause.i]), cause.lane.y - top + axisHeight,
                       Math.max(2, x(cause.lane.end[cause.i]) - x(cause.lane.start[cause.i])), cause.lane.height);
    }
    brush.lineWidth = 1;
  }

  function draw() {
    const top = box.scrollTop;
    brush.fillStyle = palette.paper;
    brush.fillRect(0, 0, width, seen);
    brush.font = '11px system-ui, sans-serif';
    brush.textBaseline = 'middle';
    const inView = lanes.filter((lane) => lane.y + lane.height > top && lane.y - top < seen);
    const below = paintBox(), tasks = paintBox(), above = {marks: paintBox(), labels: []};
    for (const lane of inView) drawLane(lane, top, below, tasks, above);
    for (const layer of [below, tasks, above.marks]) layer.paint();
    above.labels.forEach(drawLabel);
    if (state.shown) drawCause(top);
    for (const lane of inView) drawGutter(lane, top);
    drawAxis();
    tellMore(top);
  }

  // Rows that are out of view, because the box scrolls.
  function tellMore(top) {
    const computes = lanes.filter((lane) => lane.computes);  // the first lane of each row
    const above = computes.filter((lane) => lane.y + lane.height <= top).length;
    const below = computes.filter((lane) => lane.y >= top + seen - axisHeight).length;
    const parts = [above > 0 ? above + ' above' : '', below > 0 ? below + ' below' : ''].filter((part) => part);
    const text = parts.length > 0 ? 'More rows: ' + parts.join(', ') + '. Scroll inside the timeline.' : '';
    if (more.textContent !== text) more.textContent = text;
  }

  const labelOf = (lane, i) => view.heads[lane.head[i]] + view.tails[lane.tail[i]];
  const rankText = (row) => (row.count > 1 ? 'ranks ' : 'rank ') + row.ranks;

  // The span with a number of the whole view.
  function spanNumber(number) {
    if (number < 0) return null;
    let low = 0, high = lanes.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (lanes[middle].firstNumber <= number) low = middle;
      else high = middle - 1;
    }
    return {lane: lanes[low], i: number - lanes[low].firstNumber};
  }

  // Lines about what span i waited for.
  function causeLines(lane, i) {
    const text = waitTexts[lane.waitFor[i]], cause = spanNumber(lane.cause[i]);
    if (!text) return [];
    if (!cause) return lane.waitFor[i] === 3 ? [text] : [];
    const where = cause.lane.row === lane.row ? '' : ' on ' + rankText(cause.lane.row);
    const lines = [text + labelOf(cause.lane, cause.i) + where + (cause.lane.computes ? '' : ' (' + cause.lane.name + ')')];
    // Nothing but the host keeps a simulated task from starting when all before it has ended.
    const late = lane.start[i] + lane.wait[i] - cause.lane.end[cause.i], isExact = lane.tasks[i] === 1 && cause.lane.tasks[cause.i] === 1;
    if (lane.waitFor[i] !== 4 && isExact && late > 1e-6 * view.seconds) lines.push('then ' + secondsText(late) + ' for its launch by the host');
    return lines;
  }

  function spanLines(lane, i) {
    const lines = [labelOf(lane, i)], kind = view.kinds[lane.kind[i]].name;
    if (lane.tasks[i] > 1) {
      lines[0] = countText(lane.tasks[i]) + ' short tasks';
      lines.push('from ' + labelOf(lane, i) + ' on, mostly ' + kind, secondsText(lane.busy[i]) + ' of work');
    } else {
      lines.push(kind + ', ' + secondsText(lane.end[i] - lane.start[i] - lane.wait[i]));
    }
    if (lane.wait[i] > 0) lines.push(secondsText(lane.wait[i]) + ' waiting for other members');
    if (view.sizes[lane.size[i]] > 0) lines.push(bytesText(view.sizes[lane.size[i]]));
    lines.push(...causeLines(lane, i));
    if (lane.critical[i]) lines.push('on the critical path');
    lines.push(rankText(lane.row) + ', ' + lane.name + ', at ' + secondsText(lane.start[i]));
    return lines;
  }

  // Idle time before span i.
  function idleLines(lane, i) {
    const from = i > 0 ? lane.end[i - 1] : 0, to = i < lane.count ? lane.start[i] : view.seconds;
    let exposed = 0;
    for (const [start, end] of lane.exposed) exposed += Math.max(0, Math.min(end, to) - Math.max(start, from));
    const lines = ['idle ' + secondsText(to - from)];
    if (exposed > 0) lines.push(secondsText(exposed) + ' exposed communication');
    if (to - from - exposed > 1e-9 * view.seconds) lines.push(secondsText(to - from - exposed) + ' bubble');
    if (i < lane.count) lines.push('next: ' + labelOf(lane, i), ...causeLines(lane, i));
    return lines;
  }

  function laneAt(py) {
    const y = py - axisHeight + box.scrollTop;
    return lanes.find((lane) => y >= lane.y && y < lane.y + lane.height + laneGap);
  }

  function pointAt(clientX, clientY) {
    const bounds = canvas.getBoundingClientRect(), px = clientX - bounds.left, lane = laneAt(clientY - bounds.top);
    const slack = 2 * (state.to - state.from) / (width - gutter), time = timeAt(px);
    state.shown = null;
    if (!lane || px < gutter) return leave();
    const i = firstAfter(lane, time - slack);
    if (i < lane.count && lane.start[i] <= time + slack) {
      state.shown = {lane, i};
      hover.show(clientX, clientY, spanLines(lane, i));
    } else if (lane.computes && time >= 0 && time <= view.seconds) {
      hover.show(clientX, clientY, idleLines(lane, i));
    } else {
      hover.hide();
    }
    redraw();
  }

  function leave() {
    state.shown = null;
    hover.hide();
    redraw();
  }

  function move(from, to) {
    const least = view.seconds * 1e-6, length = Math.max(least, Math.min(view.seconds, to - from));
    state.from = Math.max(0, Math.min(from, view.seconds - length));
    state.to = state.from + length;
    hover.hide();
    redraw();
  }
  function zoom(factor, at = (state.from + state.to) / 2) {
    move(at - (at - state.from) * factor, at + (state.to - at) * factor);
  }
  const pan = (share) => move(state.from + share * (state.to - state.from), state.to + share * (state.to - state.from));

  const workOf = ({lane, i}) => ({from: lane.start[i] + lane.wait[i], to: lane.end[i]});

  // All spans of the critical path by date, made when first asked for.
  let path = null;
  function alongPath(by) {
    if (!path) {
      path = [];
      for (const lane of lanes) for (let i = 0; i < lane.count; i++) if (lane.critical[i]) path.push({lane, i});
      path.sort((a, b) => workOf(a).from - workOf(b).from);
    }
    if (path.length === 0) return;
    const now = state.shown ? path.findIndex((span) => span.lane === state.shown.lane && span.i === state.shown.i) : -1;
    const next = path[Math.max(0, Math.min(path.length - 1, now + by))], {lane, i} = next, work = workOf(next);
    const half = (state.to - state.from) / 2, middle = (work.from + work.to) / 2;
    if (work.from < state.from || work.to > state.to) move(middle - half, middle + half);
    if (lane.y < box.scrollTop || lane.y + lane.height > box.scrollTop + seen - axisHeight) box.scrollTop = lane.y - rowGap;
    state.shown = next;
    const bounds = canvas.getBoundingClientRect();
    hover.show(bounds.left + x(Math.max(work.from, state.from)), bounds.top + lane.y - box.scrollTop + axisHeight, spanLines(lane, i));
    redraw();
  }

  const keys = {
    ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15), '+': () => zoom(0.6), '=': () => zoom(0.6), '-': () => zoom(1 / 0.6),
    Home: () => move(0, view.seconds), n: () => alongPath(1), p: () => alongPath(-1), Escape: leave,
  };
  box.addEventListener('keydown', (event) => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  box.addEventListener('wheel', (event) => {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      zoom(Math.exp(event.deltaY * 0.004), timeAt(event.clientX - canvas.getBoundingClientRect().left));
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      pan(event.deltaX / (width - gutter));
    }
  }, {passive: false});

  // One pointer moves the view, two fingers zoom.
  const pointers = new Map();
  box.addEventListener('pointerdown', (event) => {
    if (event.target === canvas) pointers.set(event.pointerId, event.clientX);
  });
  box.addEventListener('pointermove', (event) => {
    if (!pointers.has(event.pointerId)) return pointAt(event.clientX, event.clientY);
    const before = [...pointers.values()], left = canvas.getBoundingClientRect().left;
    if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const was = Math.abs(before[0] - before[1]), is = Math.abs(event.clientX - other);
      if (was > 4 && is > 4) zoom(was / is, timeAt((event.clientX + other) / 2 - left));
    } else {
      pan((pointers.get(event.pointerId) - event.clientX) / (width - gutter));
    }
    pointers.set(event.pointerId, event.clientX);
  });
  for (const end of ['pointerup', 'pointercancel', 'pointerleave'])
    box.addEventListener(end, (event) => {
      pointers.delete(event.pointerId);
      if (end === 'pointerup') pointAt(event.clientX, event.clientY);
      if (end === 'pointerleave') leave();
    });
  box.addEventListener('dblclick', (event) => zoom(0.4, timeAt(event.clientX - canvas.getBoundingClientRect().left)));
  box.addEventListener('scroll', redraw);

  const tools = element('div', 'tools');
  const button = (text, name, act) => {
    const made = element('button', '', text);
    made.type = 'button';
    made.title = name;
    made.setAttribute('aria-label', name);
    made.addEventListener('click', act);
    tools.append(made);
    return made;
  };
  button('+', 'zoom in', () => zoom(0.5));
  button('−', 'zoom out', () => zoom(2));
  button('all', 'show the whole step', () => move(0, view.seconds));
  const only = button('only the critical path', 'fade all other tasks', () => {
    state.onlyPath = !state.onlyPath;
    only.setAttribute('aria-pressed', state.onlyPath);
    only.textContent = state.onlyPath ? 'all tasks' : 'only the critical path';
    redraw();
  });
  tools.append(element('span', '', matchMedia('(pointer: coarse)').matches
    ? 'Drag to move, two fingers to zoom, tap a task for what it waited for.'
    : 'Drag or ← → to move, Ctrl + wheel or + − to zoom, N and P to follow the critical path.'));

  place.append(timelineLegend(view, lanes), tools, box, more);
  new ResizeObserver(resize).observe(place);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', readColours);
  resize();
  readColours();
  box.timeline = {state, lanes, view, draw, zoom, pan, move, pointAt};  // for tests
}

function isBright(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return red * 0.299 + green * 0.587 + blue * 0.114 > 140;
}

function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5, 10]) if (power * factor >= least) return power * factor;
  return power * 10;
}

const colourMeanings = [
  ['forward', 'forward'], ['backward', 'backward'], ['weight-grad', 'weight gradient'], ['recompute', 'recompute'],
  ['optimizer', 'optimizer, norms'], ['communication', 'communication'], ['other', 'bubble work, other'],
];

function timelineLegend(view, lanes) {
  const legend = element('ul', 'legend'), used = new Set(view.kinds.map((kind) => kind.colour));
  const entry = (className, background, text, opacity = 1) => {
    const item = element('li'), swatch = element('span', 'swatch ' + className);
    swatch.style.backgroundColor = 'var(--' + background + ')';
    swatch.style.opacity = opacity;
    item.append(swatch, text);
    legend.append(item);
  };
  for (const [name, meaning] of colourMeanings) if (used.has(name)) entry('', name, meaning);
  if (lanes.some((lane) => lane.wait.some((wait) => wait > 0))) entry('', 'communication', 'waiting for other members', 0.25);
  if (lanes.some((lane) => lane.exposed.length)) entry('hatched', 'exposed', 'exposed communication: compute idles');
  entry('', 'idle', 'bubble: idle for any other reason');
  entry('path', 'ink', 'critical path');
  return legend;
}
