// Every attack on entries of six random runs.

import './tamper.test.js';
