// 4,000 payloads and 400 policy files, and the planted faults over more of them.

import './fuzz.test.js';
