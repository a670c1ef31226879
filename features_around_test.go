package pawl_test

// aroundFeatures are what stands around the turns of a run.
var aroundFeatures = []feature{
	{"R2.13", TestErrorHandlers},
	{"5.06", TestContextCodec},
}
