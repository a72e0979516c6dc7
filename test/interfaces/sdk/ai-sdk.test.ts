// governTools of the AI SDK.

import { aiSdkDriver } from './ai-sdk-driver.js';
import { testGovernedTools } from './govern-tools.js';

testGovernedTools('the AI SDK 6', aiSdkDriver);
