// Schemas that several routes share, and of answers whose types stand elsewhere.

import Type, { type TSchema } from 'typebox';
import { EXPOSURES } from '../../contract/response.js';
import { RUN_STATES, TERMINAL_STATES } from '../../contract/run-state.js';
import { closed, Nullable, OneOf, RunId, Sha256 } from '../../contract/shapes.js';
import type { AnswerShape } from './route.js';

export const LogIndex = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
/** The last entry that is known already; -1: none. */
export const After = Type.Integer({ minimum: -1, maximum: Number.MAX_SAFE_INTEGER });
export const Limit = (maximum: number) => Type.Integer({ minimum: 1, maximum });
export const OfRun = Type.Object({ run_id: RunId }, closed);
export const Scope = Type.Record(Type.String({ maxLength: 80 }), Type.String({ maxLength: 400 }), {
  maxProperties: 32,
});
export const Exposure = OneOf(EXPOSURES);

export const State = OneOf(RUN_STATES);
export const Ending = Type.Object({ state: OneOf(TERMINAL_STATES), reason: Type.String() }, closed);

export const json = (description: string, schema: TSchema): AnswerShape => ({
  description,
  type: 'application/json',
  schema,
});
export const plain = (description: string, type: string): AnswerShape => ({ description, type });

/** An object that other members may join in later versions. */
export const open = (properties: Record<string, TSchema>) => Type.Object(properties, { additionalProperties: true });

const Text = Type.String();
const Name = Nullable(Text);

export const LedgerInfoShape = open({
  ledger_id: Sha256,
  begin: LogIndex,
  size: LogIndex,
  checkpoint: Name,
  key: Name,
  frontier: Type.Array(Sha256),
  live: Type.Boolean(),
  title: Text,
});
export const RowPageShape = open({
  from: LogIndex,
  texts: Type.Array(Text),
  time_base: Type.Integer(),
  rows: Type.Array(Type.Array(Type.Unknown())),
});
export const ChartShape = open({
  hash: Sha256,
  machine: Text,
  nodes: Type.Array(open({ id: Text, name: Text, parent: Name })),
  edges: Type.Array(open({ id: Text, source: Text, event: Text, target: Name })),
  layouts: Type.Object({ down: open({}), right: open({}) }, closed),
});
export const CourseShape = open({
  run_id: RunId,
  tree_id: Text,
  through: LogIndex,
  chart: Sha256,
  step_chart: Nullable(Sha256),
  edges: Type.Array(Text),
  states: Type.Array(Text),
  moves: Type.Array(Type.Array(Type.Integer())),
  steps: Type.Array(LogIndex),
});
export const StepStoryShape = open({
  run_id: RunId,
  step: Type.Integer(),
  proposal: LogIndex,
  trace: Nullable(LogIndex),
  response: Name,
  decision: Nullable(LogIndex),
});
export const WhyShape = open({
  log_index: LogIndex,
  decision: OneOf(['allow', 'deny']),
  rule_id: Text,
  checks: Type.Array(open({ check: Text, passed: Nullable(Type.Boolean()), detail: Text })),
  changes: Type.Array(open({ text: Text, gives: Text })),
});
export const SessionViewShape = open({ session_id: Text, at: LogIndex, status: Text });
export const EventShape = open({
  log_index: LogIndex,
  text: Text,
  leaf_hash: Sha256,
  artifacts: Type.Array(open({ sha256: Sha256, kind: Text, case_id: Name, byte_size: Type.Integer(), withheld: Name })),
});
