// governTools of Mastra.

import { testGovernedTools } from '../govern-tools.js';
import { mastraDriver } from './mastra-driver.js';

testGovernedTools('Mastra', mastraDriver);
