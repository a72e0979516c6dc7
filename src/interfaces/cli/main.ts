#!/usr/bin/env node
// The command. Help and version are answered without loading anything else, and so is a hook of a coding agent, which
// the agent starts before each of its calls.

import { preparedAnswer, readPreparedTexts } from './help/prepared-answers.js';

const argv = process.argv.slice(2);
const isHook = argv[0] === 'hook' && argv.length > 1 && !argv.includes('--help');
const texts = isHook ? null : readPreparedTexts();
const answer = texts === null ? null : preparedAnswer(argv, texts);
if (isHook) {
  const { runHook } = await import('./hook/run-hook.js');
  await runHook(argv.slice(1));
} else if (answer === null) {
  const { runCommand } = await import('./run-cli-command.js');
  await runCommand(argv);
} else {
  // A reader that is gone is no error: `turnpike help | head`.
  process.stdout.on('error', () => process.exit(0));
  process.stdout.write(answer);
}
