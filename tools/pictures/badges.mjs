// Badges as SVG files: facts of this repository, without a request to another site.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './demo-service.mjs';
import { FOLDER } from './manifest.mjs';

const CONTRACT = join(ROOT, 'docs/contract');
const RULE = /^\| (?:S[0-4]|U)-\d{2} \| /gm;

/** The text of each badge. */
export function listBadges() {
  const { license, engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const pages = readdirSync(CONTRACT).filter((name) => name.endsWith('.md') && name !== 'README.md');
  // Each of them has a test: test/docs/coverage.test.ts requires it.
  const rules = pages.flatMap((name) => readFileSync(join(CONTRACT, name), 'utf8').match(RULE) ?? []).length;
  return {
    license: ['license', license],
    node: ['node', engines.node],
    rules: ['contract rules', `${rules} of ${rules} tested`],
  };
}

const HEIGHT = 20;
const CHARACTER = 6.5;
const PADDING = 7;

/** A grey part and a blue one: white text on both can be read on light and dark pages. */
export function renderBadge([label, value]) {
  const widthOf = (text) => Math.round(text.length * CHARACTER) + 2 * PADDING;
  const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  const [left, right] = [widthOf(label), widthOf(value)];
  const text = (words, x, width) =>
    `<text x="${x + PADDING}" y="14" textLength="${width - 2 * PADDING}" lengthAdjust="spacingAndGlyphs">` +
    `${escape(words)}</text>`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${left + right}" height="${HEIGHT}" role="img"` +
      ` aria-label="${escape(label)}: ${escape(value)}">`,
    `<title>${escape(label)}: ${escape(value)}</title>`,
    `<clipPath id="round"><rect width="${left + right}" height="${HEIGHT}" rx="4"/></clipPath>`,
    '<g clip-path="url(#round)">',
    `<rect width="${left}" height="${HEIGHT}" fill="#4a5361"/>`,
    `<rect x="${left}" width="${right}" height="${HEIGHT}" fill="#1f5fd0"/>`,
    '</g>',
    '<g fill="#ffffff" font-family="Verdana, DejaVu Sans, sans-serif" font-size="11">',
    text(label, 0, left),
    text(value, left, right),
    '</g>',
    '</svg>',
    '',
  ].join('\n');
}

export function writeBadges() {
  const folder = join(FOLDER, 'badges');
  mkdirSync(folder, { recursive: true });
  for (const [name, badge] of Object.entries(listBadges()))
    writeFileSync(join(folder, `${name}.svg`), renderBadge(badge));
}
