import Type, { type Static } from 'typebox';
import { RunRecord } from '../../../core/contract/run/run-record.js';
import { closed } from '../../../core/contract/shapes.js';

/** A run record as HTTP shows it. What is recorded in `metadata` are texts (C59); a client counts with numbers. */
export const RunView = Type.Object(
  {
    ...RunRecord.properties,
    /** Which retry of its first attempt the run is; absent for a first attempt. */
    retry_count: Type.Optional(Type.Integer({ minimum: 1 })),
  },
  closed,
);
export type RunView = Static<typeof RunView>;

export function toRunView(record: RunRecord): RunView {
  const count = record.metadata?.['retry_count'];
  return count === undefined ? record : { ...record, retry_count: Number(count) };
}
