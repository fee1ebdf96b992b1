##@ Image, chart, release
.PHONY: image
image: deps ## the operator's image as an archive, by buildah, without a registry: [NAME=...:TAG] [STAGES=all]
	@node test/image/main.ts $(if $(NAME),--name $(NAME)) $(if $(STAGES),--stages $(STAGES))

.PHONY: manifests
manifests: deps ## write deploy/install from the chart
	@node test/chart/render.ts
