// Puts the report together: reason, cards, sections.

function makeCard(card, isAnswer) {
  const made = element('div', 'card ' + card.tone + (isAnswer ? ' answer' : ''));
  made.append(element('p', 'name', card.name), element('div', 'value', card.value));
  if (card.note) made.append(element('p', 'note', card.note));
  return made;
}

// Of parts with one colour, the second to the fifth are lighter than the one before.
function makeBar(section, place) {
  const bar = element('div', 'bar'), legend = element('ul', 'legend'), lightness = [100, 62, 42, 28, 18], before = {};
  for (const share of section.shares) {
    const part = element('span'), item = element('li'), swatch = element('span', 'swatch');
    const same = before[share.colour] = (before[share.colour] ?? -1) + 1;
    part.style.width = share.share * 100 + '%';
    part.style.backgroundColor = swatch.style.backgroundColor =
      `color-mix(in srgb, var(--${share.colour}) ${lightness[Math.min(same, lightness.length - 1)]}%, var(--paper))`;
    part.title = share.name + ': ' + share.value;
    if (share.name.startsWith('exposed')) for (const each of [part, swatch]) each.classList.add('hatched');
    item.append(swatch, element('b', '', digits(share.share * 100) + ' %'), ' ' + share.name + ', ' + share.value);
    bar.append(part);
    legend.append(item);
  }
  place.append(bar, legend);
}

function makeTable(section, place) {
  const frame = element('div', 'table'), table = element('table');
  frame.tabIndex = 0;
  const [heads, ...rows] = section.rows, isUsed = heads.map((_, column) => rows.some((cells) => cells[column]));
  section.rows.forEach((cells, at) => {
    const row = element('tr');
    cells.forEach((cell, column) => {
      if (isUsed[column]) row.append(element(at === 0 ? 'th' : 'td', '', cell));
    });
    table.append(row);
  });
  frame.append(table);
  place.append(frame);
  if (frame.scrollWidth > frame.clientWidth) frame.classList.add('narrow');
}

const makers = {bar: makeBar, table: makeTable, plot: makePlot, timeline: makeTimeline};

function makePage(report) {
  const page = document.getElementById('page'), cards = element('div', 'cards');
  page.append(element('h1', '', report.headline));
  if (report.reason) page.append(element('p', 'reason', report.reason));
  report.cards.forEach((card, at) => cards.append(makeCard(card, at === 0)));
  page.append(cards);
  for (const section of report.sections) {
    const place = element('section', section.type);
    place.className = '';
    place.append(element('h2', '', section.title));
    if (section.note) place.append(element('p', 'note', section.note));
    page.append(place);
    makers[section.type](section, place);
  }
}

makePage(JSON.parse(document.getElementById('report').textContent));
