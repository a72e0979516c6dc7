import { InvariantError } from '../../core/errors.js';
import type { Sandbox } from '../../engine/ports/effects/sandbox.js';

const fail = (): never => {
  throw new InvariantError('this process has no sandbox volume');
};

/** The sandbox of a worker without the volume: other workers execute all effects. */
export const absentSandbox = (): Sandbox => ({ isElsewhere: true, gather: fail, perform: fail, settle: fail });
