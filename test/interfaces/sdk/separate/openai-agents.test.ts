// governTools of the OpenAI Agents SDK.

import { expect, test } from '@jest/globals';
import { governTools, type FunctionToolLike } from '../../../../src/interfaces/sdk/openai-agents.js';
import { testGovernedTools } from '../govern-tools.js';
import { SCHEMAS } from '../sdk-scenarios.js';
import { loadPackage } from './load-package.js';
import { openaiAgentsDriver } from './openai-agents-driver.js';

testGovernedTools('the OpenAI Agents SDK', openaiAgentsDriver);

test.each([
  [{}, 'errorFunction: null'],
  [{ errorFunction: null, timeoutMs: 1_000 }, 'raise_exception'],
])('0066: a tool that makes outputs of its failures is refused: %j', async (options, remedy) => {
  const { tool } = (await loadPackage('@openai/agents/dist/index.mjs')) as { tool: (of: object) => FunctionToolLike };
  const made = tool({ name: 'note', description: 'n', parameters: SCHEMAS.note, execute: () => 'x', ...options });
  await expect(governTools([made])).rejects.toThrow(remedy);
});
