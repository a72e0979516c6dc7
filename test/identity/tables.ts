// The bundled tables, read by another reader than that of the sources.

import { sized } from '../fixtures/campaign.js';

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

/** Every one of them in a campaign, every twelfth elsewhere. */
export const sampled = <T>(items: readonly T[]): readonly T[] => {
  const step = sized(12, 1);
  return items.filter((_, index) => index % step === 0);
};
