// Every mapping of UTS #39, as two voters and as requester and voter.

import './voter-identity.test.js';
