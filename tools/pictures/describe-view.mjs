// What determines a picture of the page: the visible elements with their texts and styles, without what differs from
// one start of the demonstration to the next. Two views with equal descriptions give equal pictures, except for ids,
// hashes, counts and times. Positions are left out, because they depend on the fonts of the machine.

import { createHash } from 'node:crypto';

/** Elements whose content depends on how long the demonstration has run. */
const VOLATILE = '.scrubber .track svg';
/** Lists that draw their children in any order. */
const UNORDERED = '[role="grid"], [role="grid"] *, .tree *';

const PROPERTIES = [
  ...['display', 'position', 'flex-direction', 'flex-wrap', 'order', 'justify-content', 'align-items', 'align-self'],
  ...['column-gap', 'row-gap', 'padding', 'margin', 'min-width', 'max-width', 'overflow', 'z-index', 'opacity'],
  ...['border-width', 'border-style', 'border-color', 'border-radius', 'box-shadow', 'color', 'background-color'],
  ...['font-family', 'font-size', 'font-weight', 'font-style', 'line-height', 'letter-spacing', 'text-align'],
  ...['text-decoration-line', 'text-transform', 'white-space', 'list-style-type', 'fill', 'stroke', 'stroke-width'],
  ...['stroke-dasharray'],
];
/** Auto margins and percentages are computed to pixels of the layout: these values are not compared. */
const OF_LAYOUT = ['margin', 'padding'];

/** The geometry of a chart, which the service computes. */
const GEOMETRY = ['d', 'x', 'y', 'width', 'height', 'rx'];

/** Runs in the page. @returns an object for each visible element */
function listElements({ part, volatile, unordered, properties, geometry }) {
  // An element without a box of its own shows its children.
  const isShown = (one) =>
    one.checkVisibility({ visibilityProperty: true, opacityProperty: true }) ||
    getComputedStyle(one).display === 'contents';
  const nameOf = (one) => {
    const role = one.getAttribute('role');
    const classes = [...one.classList].sort().map((name) => `.${name}`);
    return `${one.tagName.toLowerCase()}${classes.join('')}${role === null ? '' : `[${role}]`}`;
  };
  const styleOf = (one, pseudo) => {
    const style = getComputedStyle(one, pseudo);
    return Object.fromEntries(properties.map((name) => [name, style.getPropertyValue(name)]));
  };
  const pseudosOf = (one) =>
    ['::before', '::after'].flatMap((pseudo) => {
      const { content } = getComputedStyle(one, pseudo);
      return content === 'none' || content === 'normal' ? [] : [{ pseudo, content, style: styleOf(one, pseudo) }];
    });
  const elements = [];
  const visit = (one, above) => {
    if (!isShown(one)) return;
    const name = nameOf(one);
    const children = one.matches(volatile) ? [] : [...one.children].filter(isShown);
    const names = children.map(nameOf);
    const own = [...one.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE);
    const inChart = one.closest('.chart') !== null && one instanceof SVGElement;
    elements.push({
      name,
      above,
      isCode: one.closest('code, [role="treeitem"]') !== null,
      text: own.map(({ data }) => data).join(' '),
      field: one instanceof HTMLInputElement ? `${one.type} ${one.checked} ${one.placeholder}` : '',
      children: one.matches(unordered)
        ? [...new Set(names)].sort()
        : names.filter((each, at) => each !== names[at - 1]),
      geometry: inChart ? geometry.map((each) => one.getAttribute(each) ?? '').join(' ') : '',
      style: styleOf(one),
      pseudos: pseudosOf(one),
    });
    for (const child of children) visit(child, name);
  };
  visit(document.querySelector(part), '');
  return elements;
}

/** In their order: what an earlier one replaces, a later one does not see. */
const VARYING = [
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, 'TIME'],
  [/\b\d\d:\d\d:\d\d(?:\.\d+)?\b/g, 'TIME'],
  [/\b[a-z]+_[\w-]{21}(?:\.\d+)*(?::\d+)?/g, 'ID'],
  [/\bturnpike\/[\w-]{12}/g, 'ORIGIN'],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, 'ID'],
  [/\b(?=[a-f]*\d)[0-9a-f]{8,}\b/g, 'HASH'],
  [/ · [\d,]+ new\b/g, ''],
  [/\d[\d,]*/g, '#'],
];
/** The beginning of a random id, which the page shows in place of the id. */
const SHORT_ID = /^[\w-]{8}$/;

function normalizeText(text, isCode) {
  const trimmed = text.replace(/\s+/g, ' ').trim();
  if (isCode && SHORT_ID.test(trimmed)) return 'ID';
  return VARYING.reduce((left, [varying, by]) => left.replace(varying, by), trimmed);
}

const styleText = (style) =>
  Object.entries(style)
    .map(([name, value]) => `${name}: ${OF_LAYOUT.includes(name) ? withoutLayout(value) : value}`)
    .join('; ');

/** Whole and half pixels come from the style sheet; other lengths follow from the layout. */
const withoutLayout = (value) =>
  value.replace(/-?[\d.]+px/g, (length) =>
    Number.isInteger(Number.parseFloat(length) * 2) && Number.parseFloat(length) < 100 ? length : 'LAYOUT',
  );

/**
 * Describes the view that a page shows, or the part of it at a selector.
 * @returns sorted lines without repetition: its structure, its texts and its styles
 */
export async function describeView(page, part = 'body') {
  const elements = await page.evaluate(listElements, {
    part,
    volatile: VOLATILE,
    unordered: UNORDERED,
    properties: PROPERTIES,
    geometry: GEOMETRY,
  });
  const lines = { structure: new Set(), text: new Set(), style: new Set() };
  for (const { name, above, text, isCode, field, children, geometry, style, pseudos } of elements) {
    const path = `${above} > ${name}`;
    lines.structure.add(`${path}: ${children.join(' ')} ${geometry}`.trim());
    const shown = normalizeText(`${text} ${field}`, isCode);
    if (shown !== '') lines.text.add(`${path}: ${shown}`);
    lines.style.add(`${path}: ${styleText(style)}`);
    for (const { pseudo, content, style: own } of pseudos) {
      lines.text.add(`${path}${pseudo}: ${content}`);
      lines.style.add(`${path}${pseudo}: ${styleText(own)}`);
    }
  }
  return Object.fromEntries(Object.entries(lines).map(([part, set]) => [part, [...set].sort()]));
}

/** A hash of each part of a description. */
export const digestView = (description) =>
  Object.fromEntries(
    Object.entries(description).map(([part, lines]) => [
      part,
      createHash('sha256').update(lines.join('\n')).digest('hex').slice(0, 16),
    ]),
  );
