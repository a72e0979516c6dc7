// governTools of LangChain and LangGraph.js.

import { langchainDriver } from './langchain-driver.js';
import { testGovernedTools } from './govern-tools.js';

testGovernedTools('LangGraph.js', langchainDriver, { asksItself: false });
