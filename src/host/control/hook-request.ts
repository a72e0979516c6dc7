// A request of a hook of a coding agent. Loaded with the first one, because few services decide for coding agents.

import Type, { type Static } from 'typebox';
import { closed } from '../../core/contract/shapes.js';
import { HookQuestion } from '../../features/hooks/gate/hook-question.js';
import { HookEnvelope } from './control-messages.js';

export { answerHook } from '../../features/hooks/gate/hook-question.js';

/** One event of a coding agent. */
export const HookRequest = Type.Object({ ...HookEnvelope.properties, ...HookQuestion.properties }, closed);
export type HookRequest = Static<typeof HookRequest>;
