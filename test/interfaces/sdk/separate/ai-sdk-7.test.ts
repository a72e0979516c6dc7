// governTools with the AI SDK 7: here `ai` is that version (test/jest/loader.mjs).

import { aiSdkDriver } from '../ai-sdk-driver.js';
import { testGovernedTools } from '../govern-tools.js';

testGovernedTools('the AI SDK 7', aiSdkDriver);
