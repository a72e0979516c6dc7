import { usageError } from '../core/errors.js';
import { DEFAULT_INTERPRETATION } from '../kernel/interpreter/default-interpreter.js';
import { inertInspector } from '../kernel/interpreter/inert-inspector.js';
import { INTERPRETERS, TABLE_DRIVEN, type Interpretation } from '../kernel/interpreter/interpreter.js';
import { xstateInterpretation } from '../kernel/interpreter/xstate-actors.js';
import type { Log } from '../engine/ports/log.js';
import type { TurnpikeOptions } from './turnpike-options.js';

const DEFAULT_INTERPRETER = DEFAULT_INTERPRETATION.interpreter;

type InterpretationOptions = Pick<TurnpikeOptions, 'interpreter' | 'inspect'>;

/** @throws UsageError for an unknown interpreter, or an inspector that would receive no events */
export function checkInterpretation({ interpreter = DEFAULT_INTERPRETER, inspect }: InterpretationOptions): void {
  if (!INTERPRETERS.includes(interpreter)) {
    throw usageError(`\`interpreter\` is one of ${INTERPRETERS.join(', ')}`);
  }
  if (inspect !== undefined && interpreter !== 'xstate') {
    throw usageError("`inspect` needs `interpreter: 'xstate'` as well");
  }
}

/**
 * How the engine runs the machines of its trees. Only the first failure of an inspector is logged, because a broken
 * inspector fails at every event.
 * @throws UsageError like `checkInterpretation`
 */
export function resolveInterpretation(options: InterpretationOptions, log: Log): Interpretation {
  checkInterpretation(options);
  const { interpreter = DEFAULT_INTERPRETER, inspect } = options;
  if (interpreter !== 'xstate') return TABLE_DRIVEN;
  if (inspect === undefined) return xstateInterpretation();
  let reported = false;
  const report = (error: unknown): void => {
    if (reported) return;
    reported = true;
    log.warn('an inspector failed; runs continue, and later failures are not logged', { error });
  };
  return xstateInterpretation(inertInspector(inspect, report));
}
