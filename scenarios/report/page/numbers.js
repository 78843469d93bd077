'use strict';
// Numbers of the page: unpacked from base64 (scenarios/report/packed.h), and as text with units.

function unpacked(base64) {
  const text = atob(base64);
  let at = 0;
  return {
    more: () => at < text.length,
    next() {
      let value = 0, factor = 1, byte;
      do {
        byte = text.charCodeAt(at++);
        value += (byte & 127) * factor;
        factor *= 128;
      } while (byte > 127);
      return value % 2 ? -(value + 1) / 2 : value / 2;
    },
  };
}

// Three significant digits, never as a power of ten.
function digits(value) {
  if (value === 0) return '0';
  const size = Math.floor(Math.log10(Math.abs(value)));
  return value.toLocaleString('en-US', {maximumFractionDigits: Math.min(9, Math.max(0, 2 - size))});
}

function secondsText(seconds) {
  const size = Math.abs(seconds);
  if (size === 0) return '0 s';
  if (size < 1e-3) return digits(seconds * 1e6) + ' µs';
  if (size < 0.9995) return digits(seconds * 1e3) + ' ms';
  if (size < 7200) return digits(seconds) + ' s';
  if (size < 172800) return digits(seconds / 3600) + ' h';
  return digits(seconds / 86400) + ' days';
}

function bytesText(bytes) {
  let unit = 0;
  while (Math.abs(bytes) >= 1024 && unit < 4) bytes /= 1024, unit++;
  return digits(bytes) + ' ' + ['B', 'KiB', 'MiB', 'GiB', 'TiB'][unit];
}

function countText(count) {
  const size = Math.abs(count);
  if (size >= 1e12) return digits(count / 1e12) + ' T';
  if (size >= 1e9) return digits(count / 1e9) + ' G';
  if (size >= 1e6) return digits(count / 1e6) + ' M';
  return digits(count);
}

const textOf = {number: countText, seconds: secondsText, bytes: bytesText, share: (value) => digits(value * 100) + ' %'};

// The colour that page.css has under this name.
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
}

function element(tag, className = '', text = '') {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== '') made.textContent = text;
  return made;
}

// The text beside the pointer: its first line in bold.
const hover = {
  show(x, y, lines) {
    const box = document.getElementById('hover');
    box.replaceChildren(element('b', '', lines[0]), document.createTextNode('\n' + lines.slice(1).join('\n')));
    box.hidden = false;
    const {width, height} = box.getBoundingClientRect();
    box.style.left = Math.max(4, Math.min(x + 14, innerWidth - width - 4)) + 'px';
    box.style.top = (y + 18 + height > innerHeight ? Math.max(4, y - height - 12) : y + 18) + 'px';
  },
  hide() { document.getElementById('hover').hidden = true; },
};
