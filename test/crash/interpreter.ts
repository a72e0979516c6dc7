// The interpreter of every Turnpike of the campaign: in this process and, by the same option, in its victims.

import { parseArgs } from 'node:util';
import { DEFAULT_INTERPRETATION } from '../../src/kernel/interpreter/default-interpreter.js';
import type { Interpreter } from '../../src/kernel/interpreter/interpreter.js';

const { values } = parseArgs({ strict: false, options: { interpreter: { type: 'string' } } });

export const interpreter = (values.interpreter ?? DEFAULT_INTERPRETATION.interpreter) as Interpreter;
