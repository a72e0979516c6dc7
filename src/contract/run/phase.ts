/** The nine phases of a step, in the only order there is (S0-12). */
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
export type Phase = (typeof PHASES)[number];

/** The four outcomes of a step; exactly one of them (S0-04, S0-73). */
export const OUTCOMES = ['SUCCESS', 'VALIDATION_ERROR', 'DENIED', 'EXECUTION_ERROR'] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** What S2-07 and S2-08 call the decision: did every check pass? An execution that failed was still allowed (C01). */
export const DECISIONS = ['ALLOW', 'DENY'] as const;
export type StepDecision = (typeof DECISIONS)[number];

export const stepDecisionOf = (outcome: Outcome): StepDecision =>
  outcome === 'SUCCESS' || outcome === 'EXECUTION_ERROR' ? 'ALLOW' : 'DENY';
