package pawl_test

// handoffFeatures are what handoffs can do, and what is read instead of the conversation.
var handoffFeatures = []feature{
	{"A1.05", TestHandoffDescriptions},
	{"A1.13", TestHandoff},
	{"R2.15", TestFilterInput},
	{"L3.12", TestHandoffBesideAMessage},
	{"L3.20", TestApprovalThenHandoff},
	{"O11.01", TestHandoffDescriptions},
	{"O11.02", TestHandoffsAreChecked},
	{"O11.03", TestFirstHandoffWins},
	{"O11.04", TestHandoffFilter},
	{"O11.05", TestHandoffBesideAMessage},
	{"O11.06", TestNestHistory},
	{"O11.07", TestHandoffEvents},
	{"O11.08", TestUnknownHandoff},
	{"O11.09", TestHandoffsInACircle},
	{"E12.02", TestItemNames},
	{"E12.03", TestHandoffEvents},
}
