#!/usr/bin/env node
// The command. Help and version are answered without loading anything else.

import { preparedAnswer, readPreparedTexts } from './help/prepared-answers.js';

const argv = process.argv.slice(2);
const texts = readPreparedTexts();
const answer = texts === null ? null : preparedAnswer(argv, texts);
if (answer === null) {
  const { runCommand } = await import('./run-command.js');
  await runCommand(argv);
} else {
  // A reader that is gone is no error: `turnpike help | head`.
  process.stdout.on('error', () => process.exit(0));
  process.stdout.write(answer);
}
