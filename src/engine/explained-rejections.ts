import type { Decision } from '../kernel/decision.js';

/** C94: the rejections of a decision that name a field and a constraint. */
export const explainedRejections = ({ entries }: Decision): readonly Readonly<Record<string, unknown>>[] =>
  entries.flatMap(({ entry: { type, body } }) => {
    if (type !== 'step_trace' || body.explanation === undefined) return [];
    const { run_id, step_index, error_code, rule_id, explanation } = body;
    return [{ run_id, step_index, error_code, rule_id, explanation }];
  });
