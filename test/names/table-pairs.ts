// The bundled tables, parsed independently of the sources.

/** Source and target of every mapping in the text of a table. */
export function pairsOf(text: string): readonly (readonly [string, string])[] {
  return text
    .trim()
    .split(/\s+/)
    .flatMap((group) => {
      const [, target = '', sources = ''] = /^(.*)=(.*)$/.exec(group) ?? [];
      const points = target === '' ? [] : target.split('.').map((point) => parseInt(point, 36));
      const found: (readonly [string, string])[] = [];
      sources.split(',').reduce((before, run) => {
        const [distance = '', more = '0'] = run.split('+');
        const first = before + parseInt(distance, 36);
        const last = first + parseInt(more, 36);
        for (let point = first; point <= last; point += 1) {
          found.push([String.fromCodePoint(point), String.fromCodePoint(...points)]);
        }
        return last;
      }, 0);
      return found;
    });
}
