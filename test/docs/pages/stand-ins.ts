// What stands on a page for values that differ between two runs: ids, hashes, secrets, ports, times. A page shows the
// values of one run. A value that the page repeats must repeat in every run, so a stand-in is bound to what it stands
// for, and later commands and files of the page get that value. `...` stands for any text; on a line of its own, for
// any lines.

/** Each stand-in means one value, on the whole page. */
const BOUND: readonly RegExp[] = [
  /\b[a-z]{2,8}_[0-9A-Za-z]{21}\b/,
  /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/,
  /\b[0-9a-f]{64}\b/,
  /\b[0-9a-f]{40}\b/,
  /(?<![\w+/])[A-Za-z0-9+/]{43}=/,
  /(?<=turnpike\/)[\w-]{12}(?:\+[0-9a-f]{8})?(?![\w-])/,
  /(?<=token=|proof +)[\w-]{43}/,
];

/** These mean nothing, and need not repeat. */
const FREE: readonly RegExp[] = [/\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?Z/, /\b\d+(?:\.\d+)? (?:ms|s)\b/];

const KINDS = [...BOUND, ...FREE];
const TOKEN = new RegExp(KINDS.map(({ source }) => `(${source})`).join('|'), 'g');

export class StandIns {
  readonly #values = new Map<string, string>();

  /** Lets a text of the page stand for a value. */
  bind(standIn: string, value: string): void {
    this.#values.set(standIn, value);
  }

  /** A text of the page with the values of this run. */
  filled(text: string): string {
    return replaceAll(text, this.#values);
  }

  /** A text of this run as the page would show it. */
  shown(text: string): string {
    return replaceAll(text, new Map([...this.#values].map(([standIn, value]) => [value, standIn])));
  }

  /** Binds the stand-ins of an output that has changed, where it has as many values of each kind as the page shows. */
  pair(expected: string, output: string): void {
    for (const kind of BOUND) {
      const [standIns, values] = [expected, output].map((text) => text.match(new RegExp(kind, 'g')) ?? []);
      if (standIns?.length !== values?.length) continue;
      for (const [index, standIn] of (standIns ?? []).entries()) {
        if (!this.#values.has(standIn)) this.#values.set(standIn, values?.[index] ?? standIn);
      }
    }
  }

  /** Whether the output is what the page shows; then binds the stand-ins in it. */
  matches(expected: string, output: string): boolean {
    const standIns: string[] = [];
    const found = this.#patternOf(expected, standIns).exec(output);
    if (found === null) return false;
    const bound = new Map(this.#values);
    for (const [index, standIn] of standIns.entries()) {
      const value = found[index + 1] ?? '';
      const others = [...bound].filter(([other, its]) => (other === standIn) !== (its === value));
      if (others.length > 0) return false;
      bound.set(standIn, value);
    }
    for (const [standIn, value] of bound) this.#values.set(standIn, value);
    return true;
  }

  /** What an output must look like; `standIns` gets the text of each group. */
  #patternOf(expected: string, standIns: string[]): RegExp {
    const lines = expected.split('\n');
    const source = lines.map((line, index) => {
      const isLast = index === lines.length - 1;
      if (line.trim() === '...') return isLast ? '[^]*' : '(?:.*\\n)*?';
      return this.#linePattern(line, standIns) + (isLast ? '' : '\\n');
    });
    return new RegExp(`^${source.join('')}\\n*$`);
  }

  #linePattern(line: string, standIns: string[]): string {
    let pattern = '';
    let end = 0;
    for (const found of line.matchAll(TOKEN)) {
      const [token] = found;
      pattern += literal(this.filled(line.slice(end, found.index)));
      const kind = KINDS[(found.slice(1) as readonly (string | undefined)[]).findIndex((group) => group !== undefined)];
      const value = this.#values.get(token);
      if (value !== undefined) pattern += literal(value);
      else pattern += kind !== undefined && BOUND.includes(kind) ? `(${kind.source})` : `(?:${kind?.source})`;
      if (value === undefined && kind !== undefined && BOUND.includes(kind)) standIns.push(token);
      end = found.index + token.length;
    }
    return `${pattern}${literal(this.filled(line.slice(end)))} *`;
  }
}

/** Widths of columns follow from the texts in them. */
const literal = (text: string): string =>
  text
    .split('...')
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/ +/g, ' +'))
    .join('.*');

function replaceAll(text: string, values: ReadonlyMap<string, string>): string {
  const froms = [...values.keys()].map((from) => from.replace(/[+/.]/g, '\\$&'));
  if (froms.length === 0) return text;
  const any = new RegExp(`(?<!\\w)(?:${froms.join('|')})(?!\\w)`, 'g');
  return text.replace(any, (from) => values.get(from) ?? from);
}
