import { InvariantError } from '../../errors.js';
import { leafHash } from '../../ledger/proof/merkle.js';
import type { ReadControl } from '../../ports/pace.js';
import type { InspectorSource } from '../inspector/inspector-source.js';
import type { StreamFormat } from './event-streams.js';

/** Limits of entries, and of their bytes, in one message. One entry is sent whatever its size. */
const ENTRIES_AT_ONCE = 1_000;
const BYTES_AT_ONCE = 262_144;

/** One message for each entry. */
export const createEntryFormat = (source: Pick<InspectorSource, 'entries'>): StreamFormat => ({
  async next(from, to, control) {
    const options = { ...(control === undefined ? {} : copyControl(control)), bytesMax: BYTES_AT_ONCE };
    const texts = await source.entries(from, Math.min(to, from + ENTRIES_AT_ONCE), options);
    const events = texts.map((text, place) => {
      // Canonical JSON has no line breaks; a tampered text may have some, which would end the event.
      const entry = text.replace(/[\r\n]/g, ' ');
      const data = `{"log_index":${from + place},"leaf_hash":"${leafHash(text)}","entry":${entry}}`;
      return `id: ${from + place}\ndata: ${data}\n\n`;
    });
    return toChunk(events.join(''), from, events.length);
  },
});

/** Pages of rows, for an inspector. */
export const createRowFormat = (source: Pick<InspectorSource, 'rows'>): StreamFormat => ({
  async next(from, to, control) {
    const page = await source.rows(from, Math.min(to, from + ENTRIES_AT_ONCE), control);
    const { length } = page.rows;
    return toChunk(`event: rows\nid: ${from + length - 1}\ndata: ${JSON.stringify(page)}\n\n`, from, length);
  },
});

/** Member by member, because a signal may be created when it is first read. */
const copyControl = ({ signal, pause }: ReadControl): ReadControl => ({ signal, pause });

function toChunk(text: string, from: number, count: number): { readonly text: string; readonly through: number } {
  if (count === 0) throw new InvariantError('the ledger has fewer entries than it says');
  return { text, through: from + count };
}
