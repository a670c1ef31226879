PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE pawl_meta (
	application TEXT NOT NULL,
	version     INTEGER NOT NULL,
	store       TEXT NOT NULL
) STRICT;
INSERT INTO pawl_meta VALUES('github.com/pawl-agents/pawl',1,'5f42355eee0e13ee179697268dc84bd3');
CREATE TABLE pawl_runs (
	id      INTEGER PRIMARY KEY,
	run     TEXT NOT NULL UNIQUE,
	created INTEGER NOT NULL,
	updated INTEGER NOT NULL,
	head    INTEGER NOT NULL DEFAULT 0,
	session TEXT,
	ended   INTEGER NOT NULL DEFAULT 0,
	epoch   INTEGER NOT NULL DEFAULT 0,
	-- The claim of that epoch; until is NULL when it was released.
	until   INTEGER,
	host    TEXT NOT NULL DEFAULT '',
	boot    TEXT NOT NULL DEFAULT '',
	pid     INTEGER NOT NULL DEFAULT 0,
	start   TEXT NOT NULL DEFAULT ''
) STRICT;
INSERT INTO pawl_runs VALUES(2,'ended',1795994783027,1795994783038,9,'chat',1,1,NULL,'vm/3d1219c7','0712f7a0-ca91-401b-85a2-0d60d6077ca2',3177,'1438331');
INSERT INTO pawl_runs VALUES(4,'waiting',1795994783047,1795994783052,7,'chat',0,1,NULL,'vm/3d1219c7','0712f7a0-ca91-401b-85a2-0d60d6077ca2',3177,'1438331');
INSERT INTO pawl_runs VALUES(6,'failed',1795994783063,1795994783068,4,NULL,0,1,NULL,'vm/3d1219c7','0712f7a0-ca91-401b-85a2-0d60d6077ca2',3177,'1438331');
INSERT INTO pawl_runs VALUES(8,'fork',1795994783072,1795994783074,11,'other',0,1,NULL,'vm/3d1219c7','0712f7a0-ca91-401b-85a2-0d60d6077ca2',3177,'1438331');
CREATE TABLE pawl_facts (
	-- The run's number in the upper 32 bits, the fact's in the lower.
	id      INTEGER PRIMARY KEY,
	run     INTEGER AS (id >> 32),
	seq     INTEGER AS (id & 0xffffffff),
	kind    TEXT NOT NULL,
	version INTEGER NOT NULL,
	frame   TEXT NOT NULL,
	time    INTEGER NOT NULL,
	payload TEXT NOT NULL,
	salt    BLOB NOT NULL,
	hash    BLOB NOT NULL
) STRICT;
INSERT INTO pawl_facts VALUES(8589934593,'started',1,'',1795994783026,'{"run":"ended","agent":"support","digest":"A3Un81oMzAyBJoqHViFD1e60mJ3rHK4VeUMhCAprI9M","input":[{"role":"user","content":"hi"}],"session":{"id":"chat","backend":"sqlite/5f42355eee0e13ee179697268dc84bd3","own":true,"batches":true},"turns":10,"machine":1}',X'7c809a08da82743cf9578887af055185',X'33ca295af5fc4276a8206176bacaa27428c73f94bf3a4dc07ecbfc268ce3ec97');
INSERT INTO pawl_facts VALUES(8589934594,'claimed',1,'',1795994783026,'{"epoch":1,"owner":{"host":"vm/3d1219c7","boot":"0712f7a0-ca91-401b-85a2-0d60d6077ca2","pid":3177,"start":"1438331"}}',X'd4780639b7dca4dba508c89f72f582ad',X'6403ad9de910da4182a85fceaf44c09ea204ed5e9cd00732b7adb601251e0f4c');
INSERT INTO pawl_facts VALUES(8589934595,'loaded',1,'',1795994783034,'{}',X'1a71d561a60cc94351f07a19c347cf41',X'f7da7d4d491771d0ca7c99c6f209e9ad4eb80dec097cd580ddff8d68aa380ab3');
INSERT INTO pawl_facts VALUES(8589934596,'confirmed',1,'',1795994783034,'{"n":1,"upto":1}',X'6e4b594de4936755a889a7d586781268',X'135d72bba0330325962730b48c4d8abae426cf8e9536df6477be5aad0aaedcba');
INSERT INTO pawl_facts VALUES(8589934597,'prepared',1,'',1795994783038,'{"n":1,"upto":1,"manifest":{"agent":"support","settings":"uU7EzuRB_VsGwvYjnwRHC4UL2lxHV_OkKOGMsHvaJsg","tools":[{"name":"refund","id":"local/refund/v1:6mQ3Y8SXTBr8G6TsLOjhhm3Zjb8pbbGtZNHGwUhqL6k"}]},"same":1}',X'15b4aebd7f18df97a53328859833440a',X'5f85b9f5cdc5e5d1de79bbce510a2b8730d49426a9e60489f5b28380a2ed344c');
INSERT INTO pawl_facts VALUES(8589934598,'responded',1,'',1795994783038,'{"id":"m1.0.1","resp":"resp_1","items":[{"type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"hello","annotations":[]}]}]}',X'6fbef812075dfa5bf00c75ee873288c4',X'a88cc133f2807676985ad6035398c411207c1596cbd48fafa62addb2206ed471');
INSERT INTO pawl_facts VALUES(8589934599,'planned',1,'',1795994783038,'{"n":1,"final":"message"}',X'3963e3d5f00107b7b11a823e46663cc8',X'41370f498c79602272bd6bc3b42494b3b2318bee0faa0e52ccacbaef6a37a2be');
INSERT INTO pawl_facts VALUES(8589934600,'confirmed',1,'',1795994783038,'{"n":2,"upto":2}',X'10ab5aab150f57760d9cf526e7a003bc',X'dd026da846a1e2179c3b72c9c9658241951eda11b7e140d6fe6ddaaaabf469fc');
INSERT INTO pawl_facts VALUES(8589934601,'finished',1,'',1795994783038,'{"at":1}',X'9fe7316463e113091d989e398ac8c9c3',X'bfda688c1c71509cbb52ecdbd180c885bfbaa62c8f35b657865c89a9c2176496');
INSERT INTO pawl_facts VALUES(17179869185,'started',1,'',1795994783047,'{"run":"waiting","agent":"support","digest":"iZrgSC338BpznmNl1hMvuduAc-R6GlOclmHJ_HSlM-g","input":[{"role":"user","content":"refund"}],"session":{"id":"chat","backend":"sqlite/5f42355eee0e13ee179697268dc84bd3","own":true,"batches":true},"turns":10,"machine":1}',X'db6539ba9d790ff2d860a5760ee3eec8',X'2333334f9a518738bf98f25e610f24100feb05c6e6dc4e8a69743d8f3356d66d');
INSERT INTO pawl_facts VALUES(17179869186,'claimed',1,'',1795994783047,'{"epoch":1,"owner":{"host":"vm/3d1219c7","boot":"0712f7a0-ca91-401b-85a2-0d60d6077ca2","pid":3177,"start":"1438331"}}',X'e89a46ba27b056dce03c1a18960ed145',X'b8c76f729bd345e61160d96025e741b9f77def65354f2419613b25e84e1aaf83');
INSERT INTO pawl_facts VALUES(17179869187,'loaded',1,'',1795994783050,'{"items":[{"role":"user","content":"hi"},{"type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"hello","annotations":[]}]}]}',X'd835821c24fadbdf0529edab14213508',X'9d0362ddfc36d4b83f8bd356095cbc9ffc4e6c879c83e304328fba84eb30ee46');
INSERT INTO pawl_facts VALUES(17179869188,'confirmed',1,'',1795994783050,'{"n":1,"upto":3}',X'71bd4aae548b06cfe0ba3c1f8ecc9a60',X'0bd735cb11b06ebc24e11fab694935427f7d1d2944892fe9f0184990c8ae3684');
INSERT INTO pawl_facts VALUES(17179869189,'prepared',1,'',1795994783052,'{"n":1,"upto":3,"manifest":{"agent":"support","settings":"uU7EzuRB_VsGwvYjnwRHC4UL2lxHV_OkKOGMsHvaJsg","tools":[{"name":"refund","id":"local/refund/v1:6mQ3Y8SXTBr8G6TsLOjhhm3Zjb8pbbGtZNHGwUhqL6k"}]},"same":1}',X'4a7d568f3bee0e54a2a4af1d35f92f42',X'3d92212dd65620e75d491173e89d91c8271f271fd015cd0e7b8b82f492fb6eb7');
INSERT INTO pawl_facts VALUES(17179869190,'responded',1,'',1795994783052,'{"id":"m1.0.1","resp":"resp_1","items":[{"type":"function_call","call_id":"c1","name":"refund","arguments":"{\"cents\":5}","status":"completed"}]}',X'5b015dd19943f1f4f04cc21e101f74e4',X'269b861cf8fa40bd794ff001aef2297fe714edfe982cbb0d3a96c0533097b6fb');
INSERT INTO pawl_facts VALUES(17179869191,'planned',1,'',1795994783052,'{"n":1,"calls":[{"digest":"QTueBgj1urYCU4_FdSIjo0xjuoC9Gg1kCIYbAot1omI","gate":"ask"}]}',X'4dced1ea52dd3c82997f620a7f0c779e',X'69be6c4e2ebf73749615b26ad26b71f8e30bbe1be4644677325cc7378855553d');
INSERT INTO pawl_facts VALUES(25769803777,'started',1,'',1795994783063,'{"run":"failed","agent":"support","digest":"iZrgSC338BpznmNl1hMvuduAc-R6GlOclmHJ_HSlM-g","input":[{"role":"user","content":"refund"}],"conv":"conv_1","turns":10,"machine":1}',X'8fd6cd0fb94054a31bdf8bdf037ab6b9',X'ba1c4e61234950cec9e18b9b58dc5183b6d3a1ff9ddbc17ead58b9334202e6e8');
INSERT INTO pawl_facts VALUES(25769803778,'claimed',1,'',1795994783063,'{"epoch":1,"owner":{"host":"vm/3d1219c7","boot":"0712f7a0-ca91-401b-85a2-0d60d6077ca2","pid":3177,"start":"1438331"}}',X'd0379fe3af17f9b16912ab50cec5624f',X'bb83cc78db3cc16616920afded943d8640964ee06d6051521cab8333844dc1f8');
INSERT INTO pawl_facts VALUES(25769803779,'prepared',1,'',1795994783064,'{"n":1,"upto":1,"manifest":{"agent":"support","settings":"uU7EzuRB_VsGwvYjnwRHC4UL2lxHV_OkKOGMsHvaJsg","tools":[{"name":"refund","id":"local/refund/v1:6mQ3Y8SXTBr8G6TsLOjhhm3Zjb8pbbGtZNHGwUhqL6k"}]},"same":1}',X'ff8a8d1e1d1c85e9b05d07be2f1da930',X'7ece0971d4c3466447b81bf3727f789d3a77e9b9b8c70f42c8887fb9727a9738');
INSERT INTO pawl_facts VALUES(25769803780,'failed',1,'',1795994783068,'{"id":"m1.0.1","code":"error","error":"no more","unknown":true}',X'8f76d12cda6d4c6f49055e4bd86d90b1',X'4099ca7e8168fb1d630e0df6f609fb9cbef9a5c58acf42003507c2cce23d78a3');
INSERT INTO pawl_facts VALUES(34359738369,'started',1,'',1795994783047,'{"run":"waiting","agent":"support","digest":"iZrgSC338BpznmNl1hMvuduAc-R6GlOclmHJ_HSlM-g","input":[{"role":"user","content":"refund"}],"session":{"id":"chat","backend":"sqlite/5f42355eee0e13ee179697268dc84bd3","own":true,"batches":true},"turns":10,"machine":1}',X'db6539ba9d790ff2d860a5760ee3eec8',X'2333334f9a518738bf98f25e610f24100feb05c6e6dc4e8a69743d8f3356d66d');
INSERT INTO pawl_facts VALUES(34359738370,'claimed',1,'',1795994783047,'{"epoch":1,"owner":{"host":"vm/3d1219c7","boot":"0712f7a0-ca91-401b-85a2-0d60d6077ca2","pid":3177,"start":"1438331"}}',X'e89a46ba27b056dce03c1a18960ed145',X'b8c76f729bd345e61160d96025e741b9f77def65354f2419613b25e84e1aaf83');
INSERT INTO pawl_facts VALUES(34359738371,'loaded',1,'',1795994783050,'{"items":[{"role":"user","content":"hi"},{"type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"hello","annotations":[]}]}]}',X'd835821c24fadbdf0529edab14213508',X'9d0362ddfc36d4b83f8bd356095cbc9ffc4e6c879c83e304328fba84eb30ee46');
INSERT INTO pawl_facts VALUES(34359738372,'confirmed',1,'',1795994783050,'{"n":1,"upto":3}',X'71bd4aae548b06cfe0ba3c1f8ecc9a60',X'0bd735cb11b06ebc24e11fab694935427f7d1d2944892fe9f0184990c8ae3684');
INSERT INTO pawl_facts VALUES(34359738373,'prepared',1,'',1795994783052,'{"n":1,"upto":3,"manifest":{"agent":"support","settings":"uU7EzuRB_VsGwvYjnwRHC4UL2lxHV_OkKOGMsHvaJsg","tools":[{"name":"refund","id":"local/refund/v1:6mQ3Y8SXTBr8G6TsLOjhhm3Zjb8pbbGtZNHGwUhqL6k"}]},"same":1}',X'4a7d568f3bee0e54a2a4af1d35f92f42',X'3d92212dd65620e75d491173e89d91c8271f271fd015cd0e7b8b82f492fb6eb7');
INSERT INTO pawl_facts VALUES(34359738374,'responded',1,'',1795994783052,'{"id":"m1.0.1","resp":"resp_1","items":[{"type":"function_call","call_id":"c1","name":"refund","arguments":"{\"cents\":5}","status":"completed"}]}',X'5b015dd19943f1f4f04cc21e101f74e4',X'269b861cf8fa40bd794ff001aef2297fe714edfe982cbb0d3a96c0533097b6fb');
INSERT INTO pawl_facts VALUES(34359738375,'planned',1,'',1795994783052,'{"n":1,"calls":[{"digest":"QTueBgj1urYCU4_FdSIjo0xjuoC9Gg1kCIYbAot1omI","gate":"ask"}]}',X'4dced1ea52dd3c82997f620a7f0c779e',X'69be6c4e2ebf73749615b26ad26b71f8e30bbe1be4644677325cc7378855553d');
INSERT INTO pawl_facts VALUES(34359738376,'forked',1,'',1795994783070,'{"run":"fork"}',X'f0bd0b07d2fee760d90be970defa803d',X'8aa182262fff76f9a3983e5fab105da64078afa5aa0ce8f5716f9885fcb5d9f6');
INSERT INTO pawl_facts VALUES(34359738377,'forked',1,'',1795994783071,'{"run":"fork","session":{"id":"other","backend":"sqlite/5f42355eee0e13ee179697268dc84bd3","own":true,"batches":true}}',X'c7839a053915eaf81cd4f56309e49f9b',X'65c9a58196f3bd9f3e1b0fdac885ace941af43647af80cf97a275b57641503d4');
INSERT INTO pawl_facts VALUES(34359738378,'claimed',1,'',1795994783074,'{"epoch":1,"owner":{"host":"vm/3d1219c7","boot":"0712f7a0-ca91-401b-85a2-0d60d6077ca2","pid":3177,"start":"1438331"}}',X'1c4d50a134cceb2bb2a50eed4fc4ed08',X'ac50c29d4ab05a57238b30c369f1b295b98d7d3b0fb43ab8686b5efa988118bc');
INSERT INTO pawl_facts VALUES(34359738379,'confirmed',1,'',1795994783074,'{"n":1,"upto":3}',X'5f9756d126b5759c702309f4a75bb891',X'c396dfef78c783173e0f5609890cf7d0a4c72a9aeae962580f0099250f9faf49');
CREATE TABLE pawl_inbox (
	id       INTEGER PRIMARY KEY,
	run      INTEGER NOT NULL REFERENCES pawl_runs (id),
	key      TEXT NOT NULL,
	kind     TEXT NOT NULL,
	version  INTEGER NOT NULL,
	frame    TEXT NOT NULL,
	time     INTEGER NOT NULL,
	payload  TEXT NOT NULL,
	salt     BLOB NOT NULL,
	hash     BLOB NOT NULL,
	consumed INTEGER NOT NULL DEFAULT 0,
	UNIQUE (run, key)
) STRICT;
INSERT INTO pawl_inbox VALUES(1,4,'1.0#0','decided',1,'',1795994783079,'{"id":"t1.0.0","digest":"QTueBgj1urYCU4_FdSIjo0xjuoC9Gg1kCIYbAot1omI","verdict":"approve","by":"ann","at":1795994783079}',X'1a4f67c69eb83dd277e69fc7a689e789',X'5997ec3bd08261d829c9a11579be3afdb85dbcbe8625fcb9d4de5171fa996989',0);
CREATE TABLE pawl_batches (
	session_id TEXT NOT NULL,
	batch_id   TEXT NOT NULL,
	PRIMARY KEY (session_id, batch_id)
) STRICT, WITHOUT ROWID;
INSERT INTO pawl_batches VALUES('chat','ended/1');
INSERT INTO pawl_batches VALUES('chat','ended/2');
INSERT INTO pawl_batches VALUES('chat','waiting/1');
INSERT INTO pawl_batches VALUES('other','fork/1');
CREATE TABLE agent_sessions (
	session_id TEXT PRIMARY KEY,
	created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
	updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
);
INSERT INTO agent_sessions VALUES('chat','2026-11-29 23:26:23','2026-11-29 23:26:23');
INSERT INTO agent_sessions VALUES('other','2026-11-29 23:26:23','2026-11-29 23:26:23');
CREATE TABLE agent_messages (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	session_id TEXT NOT NULL,
	message_data TEXT NOT NULL,
	created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
	FOREIGN KEY (session_id) REFERENCES agent_sessions (session_id) ON DELETE CASCADE
);
INSERT INTO agent_messages VALUES(1,'chat','{"role":"user","content":"hi"}','2026-11-29 23:26:23');
INSERT INTO agent_messages VALUES(2,'chat','{"type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"hello","annotations":[]}]}','2026-11-29 23:26:23');
INSERT INTO agent_messages VALUES(3,'chat','{"role":"user","content":"refund"}','2026-11-29 23:26:23');
INSERT INTO agent_messages VALUES(4,'other','{"role":"user","content":"hi"}','2026-11-29 23:26:23');
INSERT INTO agent_messages VALUES(5,'other','{"type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"hello","annotations":[]}]}','2026-11-29 23:26:23');
INSERT INTO agent_messages VALUES(6,'other','{"role":"user","content":"refund"}','2026-11-29 23:26:23');
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('agent_messages',6);
CREATE INDEX pawl_runs_open ON pawl_runs (id) WHERE ended = 0;
CREATE INDEX pawl_runs_session ON pawl_runs (session) WHERE session IS NOT NULL;
CREATE INDEX pawl_runs_session_open ON pawl_runs (session) WHERE session IS NOT NULL AND ended = 0;
CREATE INDEX idx_agent_messages_session_id ON agent_messages (session_id, id);
COMMIT;
