// The page that opens the site. It is derived from the README: the first screen, the first code with what it prints,
// each starting point as a card, and what is guaranteed.

/**
 * @param readme - the text of the README
 * @returns the Markdown of the start page, with links as in the README
 * @throws when the README has no such part
 */
export function startPage(readme) {
  const [opening, ...sections] = readme.split(/^(?=## )/m);
  const [title] = partOf(opening, /^# .+$/m, 'a title');
  const [, claim, reason] = partOf(opening, /^\*\*([^*]+)\*\*\n([^]+?)\n\n/m, 'a bold sentence with its reason');
  const [drawing] = partOf(opening, /^!\[[^\]]+\]\([^)]+\)$/m, 'a drawing');
  const [picture] = partOf(opening, /<picture>[^]*?<\/picture>/, 'a picture');
  const [example] = partOf(sections[0] ?? '', EXAMPLE, 'code in its first section, and what it prints');
  const [, heading, rows] = partOf(readme, STARTS, 'a table of starting points');
  const starts = rows.trim().split('\n').map(toCard);
  const guarantees = sections.find((section) => section.startsWith('## What is guaranteed'));
  if (guarantees === undefined) throw missing('what is guaranteed');
  const claimed = `<p class="start-claim">${claim}</p>`;
  const cards = ['<div class="start-cards">', ...starts, '</div>'];
  return [title, claimed, reason, drawing, picture, example, heading, ...cards, guarantees].join('\n\n');
}

const EXAMPLE = /^## [^]*?^```js\n[^]*?^```\n[^]*?^```text\n[^]*?^```$/m;
const STARTS = /^(## .+)\n\n<!-- table: starts -->\n.*\n\|[-|]+\n((?:\|.*\n)+)/m;
/** Who, one command, and where to go on. */
const START = /^\| ([^|]+) \| `([^`|]+)` \| ([^|]*\]\([^|]+) \|$/;

const missing = (what) => new Error(`README.md: the start page of the site needs ${what}`);

function partOf(text, pattern, what) {
  const found = pattern.exec(text);
  if (found === null) throw missing(what);
  return found;
}

const capital = (text) => text.replace(/\p{L}/u, (letter) => letter.toUpperCase());

function toCard(row) {
  const [, who, command, then] = partOf(row, START, `who, one command and a link in: ${row}`);
  return `<div>\n\n### ${capital(who)}\n\n\`\`\`bash\n${command}\n\`\`\`\n\n${capital(then)}.\n\n</div>`;
}
