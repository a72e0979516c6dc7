/** The nine phases of a step, in their only order (S0-12). */
export const PHASES = [
  'RECEIVE',
  'PARSE',
  'VALIDATE_SCHEMA',
  'VALIDATE_ACTION',
  'VALIDATE_ARGS',
  'AUTHORIZE',
  'EXECUTE',
  'RECORD',
  'RESPOND',
] as const;
/** One of `PHASES`. */
export type Phase = (typeof PHASES)[number];

/** The four outcomes; a step has exactly one of them (S0-04, S0-73). */
export const OUTCOMES = ['SUCCESS', 'VALIDATION_ERROR', 'DENIED', 'EXECUTION_ERROR'] as const;
/** One of `OUTCOMES`. */
export type Outcome = (typeof OUTCOMES)[number];

/** The decision of S2-07 and S2-08: whether every check passed. */
export const DECISIONS = ['ALLOW', 'DENY'] as const;
/** One of `DECISIONS`. */
export type StepDecision = (typeof DECISIONS)[number];
