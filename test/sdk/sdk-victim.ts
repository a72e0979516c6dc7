// A service with tools of an SDK, for kills.campaign.test.ts: it has one conversation after another until it is killed.
// The next process repeats the conversation that was not finished, with the same ids of calls, as an application does
// that has kept its messages.
//
// node sdk-victim.js HOME CONTRACT FOLDER SDK

import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { manifestPolicySource } from '../../src/adapters/policy/manifest-policy-source.js';
import { winstonLog } from '../../src/adapters/system/winston-log.js';
import { openTurnpike } from '../../src/runtime/turnpike.js';
import { aiSdkDriver } from './ai-sdk-driver.js';
import { langchainDriver } from './langchain-driver.js';
import { call, ToolWorld } from './sdk-scenarios.js';

const [home = '', contract = '', folder = '', sdk = ''] = process.argv.slice(2);
const CALLS = [0, 1, 2, 3];

/** Its effects outlive the process. */
class LastingWorld extends ToolWorld {
  override note = ({ text }: { readonly text: string }): { readonly noted: string } => {
    appendFileSync(join(folder, 'effects'), `${text}\n`);
    process.stdout.write('effect\n');
    return { noted: text };
  };
}

const governed = await (sdk === 'ai-sdk' ? aiSdkDriver : langchainDriver)(new LastingWorld());
const policies = manifestPolicySource(contract);
const turnpike = await openTurnpike({ home, policies, tools: governed.definitions, log: winstonLog('silent') });
const progress = join(folder, 'progress');
let conversation = existsSync(progress) ? readFileSync(progress, 'utf8').split('\n').length - 1 : 0;

for (;;) {
  const who = { actor: 'sdk-agent', role: 'SDK_AGENT', lane: 'SDK_WORK', case: 'case-1' } as const;
  const run = await turnpike.startAgent({ ...who, key: `chat-${conversation}` });
  const calls = CALLS.map((n) => call(`c${n}`, 'note', { text: `${conversation}.${n}` }));
  const { results } = await governed.converse({ turnpike, run }).ask(calls);
  appendFileSync(progress, `${JSON.stringify(results)}\n`);
  await run.end();
  conversation += 1;
}
