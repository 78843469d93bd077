// Plots by uPlot. It wants one list of x for all series, so every point gets a column of its own.

const seriesColours = ['forward', 'exposed', 'weight-grad', 'recompute', 'communication', 'backward', 'other', 'ink'];

// Labels of points that are drawn beside them: where they are few and short. Others are in the hover alone.
const mostLabels = 12, longestLabel = 24;

// Steps between the marks of an axis of whole numbers.
const wholeNumbers = [0, 1, 2, 3, 4, 5, 6, 7, 8].flatMap((power) => [1, 2, 5].map((factor) => factor * 10 ** power));

// Steps between the marks of an axis of bytes.
const powersOfTwo = Array.from({length: 50}, (_, power) => 2 ** power);

// Marks of a logarithmic axis: 1, 2, 5, or more of them where these are few.
function logMarks(least, most) {
  for (const factors of [[1], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 6, 8]]) {
    const marks = [];
    for (let power = 10 ** Math.floor(Math.log10(least)); power <= most; power *= 10)
      for (const factor of factors) if (factor * power >= least && factor * power <= most) marks.push(factor * power);
    if (marks.length >= 4) return marks;
  }
  return Array.from({length: 5}, (_, i) => Number((least * (most / least) ** ((i + 0.5) / 5)).toPrecision(2)));
}

function columnsOf(series) {
  const points = [];
  series.forEach((each, s) => each.x.forEach((x, i) => {
    if (x !== null && each.y[i] !== null) points.push({x, y: each.y[i], s, i});
  }));
  points.sort((a, b) => a.x - b.x);
  const columns = [points.map((point) => point.x), ...series.map(() => new Array(points.length).fill(null))];
  points.forEach((point, at) => { columns[point.s + 1][at] = point.y; });
  return {points, columns};
}

// The line y = x through all points.
function diagonalOf(series) {
  const all = series.flatMap((each) => [...each.x, ...each.y]).filter((value) => value > 0);
  const ends = [Math.min(...all), Math.max(...all)];
  return {name: 'predicted = measured', x: ends, y: ends, mark: 'line', labels: []};
}

function rangeOf(axis, fromZero) {
  return (plot, least, most) => {
    if (least === null) return axis.log ? [1, 10] : [0, 1];
    if (axis.log) return [least / 1.25, most * 1.25];
    if (fromZero && least >= 0 && least < most * 0.5) return [0, most * 1.08 || 1];
    const margin = (most - least) * 0.03 || Math.abs(most) * 0.1 || 1;
    return [least - margin, most + margin];
  };
}

function makePlot(section, place) {
  const dashed = [...section.levels, ...(section.diagonal ? [diagonalOf(section.series)] : [])];
  const all = [...section.series, ...dashed], {points, columns} = columnsOf(all);
  const names = all.map((each, s) => s < section.series.length ? seriesColours[s % seriesColours.length] : 'ink');
  const frame = element('div', 'plot');
  let plot = null;

  const isWhole = (side) => section[side].unit === 'number' && section.series.every((each) => each[side].every(Number.isInteger));
  const axis = (side) => ({
    label: section[side].label, stroke: colour('soft'), labelSize: 22, size: side === 'y' ? 78 : 38,
    grid: {stroke: colour('line'), width: 1}, ticks: {stroke: colour('line')},
    ...(section[side].unit === 'bytes' ? {incrs: powersOfTwo} : isWhole(side) ? {incrs: wholeNumbers} : {}),
    ...(section[side].log ? {splits: (plot, number, least, most) => logMarks(least, most), filter: (_, marks) => marks} : {}),
    values: (_, values) => values.map((value) => value === null ? '' : textOf[section[side].unit](value)),
  });
  const options = () => ({
    width: frame.clientWidth, height: frame.clientWidth < 600 ? 280 : 360, legend: {show: false},
    cursor: {drag: {x: true, y: true, uni: 30}, points: {show: false}},
    scales: {
      x: {time: false, distr: section.x.log ? 3 : 1, range: rangeOf(section.x, false)},
      y: {distr: section.y.log ? 3 : 1, range: rangeOf(section.y, true)},
    },
    axes: [axis('x'), axis('y')],
    hooks: {draw: [drawLabels]},
    series: [{}, ...all.map((each, s) => ({
      label: each.name, stroke: colour(names[s]), width: 2, spanGaps: true, show: shown[s],
      dash: s < section.series.length ? undefined : [7, 5],
      paths: each.mark === 'points' ? () => null : each.mark === 'steps' ? uPlot.paths.stepped({align: 1}) : undefined,
      points: {show: each.mark === 'points', size: 10, width: 1, stroke: colour('paper'), fill: colour(names[s])},
    }))],
  });

  function drawLabels(plot) {
    const pen = plot.ctx, dots = devicePixelRatio || 1;
    pen.save();
    pen.font = 12 * dots + 'px system-ui, sans-serif';
    pen.fillStyle = colour('ink');
    pen.textBaseline = 'middle';
    section.series.forEach((each, s) => {
      if (!shown[s] || each.mark !== 'points' || each.labels.length > mostLabels) return;
      each.labels.forEach((label, i) => {
        if (!label || label.length > longestLabel || each.x[i] === null || each.y[i] === null) return;
        const px = plot.valToPos(each.x[i], 'x', true), py = plot.valToPos(each.y[i], 'y', true);
        const isLeft = px + 9 * dots + pen.measureText(label).width > plot.bbox.left + plot.bbox.width;
        pen.textAlign = isLeft ? 'right' : 'left';
        pen.fillText(label, px + (isLeft ? -9 : 9) * dots, py);
      });
    });
    pen.restore();
  }

  const shown = all.map(() => true);
  function make() {
    if (plot) plot.destroy();
    plot = new uPlot(options(), columns, frame);
    plot.over.addEventListener('mousemove', nearest);
    plot.over.addEventListener('mouseleave', hover.hide);
    frame.plot = plot;  // for tests
  }

  // The text of the point that is next to the pointer.
  function nearest(event) {
    const bounds = plot.over.getBoundingClientRect(), px = event.clientX - bounds.left, py = event.clientY - bounds.top;
    let best = null, least = 900;
    for (const point of points) {
      if (!shown[point.s]) continue;
      const distance = (plot.valToPos(point.x, 'x') - px) ** 2 + (plot.valToPos(point.y, 'y') - py) ** 2;
      if (distance < least) least = distance, best = point;
    }
    if (!best) return hover.hide();
    const series = all[best.s], label = series.labels[best.i];
    hover.show(event.clientX, event.clientY, [
      label || series.name, ...(label && series.name ? [series.name] : []),
      section.x.label + ': ' + textOf[section.x.unit](best.x), section.y.label + ': ' + textOf[section.y.unit](best.y),
    ]);
  }

  const legend = element('ul', 'legend');
  all.forEach((each, s) => {
    const item = element('li'), button = element('button'), swatch = element('span', 'swatch');
    swatch.style.backgroundColor = 'var(--' + names[s] + ')';
    if (s >= section.series.length) swatch.classList.add('path');
    button.type = 'button';
    button.title = 'show or hide';
    button.append(swatch, each.name);
    button.addEventListener('click', () => {
      shown[s] = !shown[s];
      button.classList.toggle('off', !shown[s]);
      plot.setSeries(s + 1, {show: shown[s]});
    });
    item.append(button);
    legend.append(item);
  });
  place.append(legend, frame);
  make();
  new ResizeObserver(() => plot.setSize({width: frame.clientWidth, height: plot.height})).observe(frame);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', make);
}
