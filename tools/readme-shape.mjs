// Prints how long a README is: `node tools/readme-shape.mjs [FILE]`. Words are those that a reader sees outside of
// blocks of code: table cells and code in sentences count; addresses, HTML and comments do not.

import { readFileSync } from 'node:fs';

const text = readFileSync(process.argv[2] ?? 'README.md', 'utf8');
const prose = text.replaceAll(/^```[^]*?^```$/gm, '').replaceAll(/<!--[^]*?-->/g, '');
const seen = prose
  .replaceAll(/<[a-z/](?:[^<>"]|"[^"]*")*>/g, ' ')
  .replaceAll(/!\[[^\]]*\]\([^()]*\)/g, ' ')
  .replaceAll(/\]\([^()]*\)/g, ' ');
const words = seen.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
const tables = prose.match(/^\|.*\n\|[-| :]+\|\n(?:\|.*\n?)*/gm) ?? [];
const rows = tables.map((table) => table.trimEnd().split('\n').length - 2);
const pictures = prose.match(/<img\b|!\[/g) ?? [];
const firstCode = text.split('\n').findIndex((line) => line.startsWith('```')) + 1;

console.log(`words without blocks of code: ${words.length}`);
console.log(`rows of tables: ${rows.reduce((sum, count) => sum + count, 0)} (${rows.join(' + ')})`);
console.log(`line of the first block of code: ${firstCode}`);
console.log(`pictures: ${pictures.length}`);
