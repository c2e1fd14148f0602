package manifests

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Peer is one end of a connection: a pod, or an address outside of the cluster.
type Peer struct {
	Namespace string
	Labels    map[string]string
	Address   netip.Addr
}

// Reaches reports whether the network policies at both ends allow a connection from one peer to another.
func Reaches(policies []*networkingv1.NetworkPolicy, from, to Peer, port int32) bool {
	return leaves(policies, from, to, port) && enters(policies, from, to, port)
}

func leaves(policies []*networkingv1.NetworkPolicy, from, to Peer, port int32) bool {
	bound := false
	for _, policy := range policies {
		if !concerns(policy, networkingv1.PolicyTypeEgress, from) {
			continue
		}
		bound = true
		for _, rule := range policy.Spec.Egress {
			if among(rule.To, policy.Namespace, to) && open(rule.Ports, port) {
				return true
			}
		}
	}
	return !bound
}

func enters(policies []*networkingv1.NetworkPolicy, from, to Peer, port int32) bool {
	bound := false
	for _, policy := range policies {
		if !concerns(policy, networkingv1.PolicyTypeIngress, to) {
			continue
		}
		bound = true
		for _, rule := range policy.Spec.Ingress {
			if among(rule.From, policy.Namespace, from) && open(rule.Ports, port) {
				return true
			}
		}
	}
	return !bound
}

func concerns(policy *networkingv1.NetworkPolicy, way networkingv1.PolicyType, pod Peer) bool {
	if policy.Namespace != pod.Namespace || !selects(&policy.Spec.PodSelector, pod.Labels) {
		return false
	}
	for _, typ := range policy.Spec.PolicyTypes {
		if typ == way {
			return true
		}
	}
	return false
}

// among reports whether a rule applies to the peer; a rule without peers applies to all.
func among(peers []networkingv1.NetworkPolicyPeer, home string, one Peer) bool {
	if len(peers) == 0 {
		return true
	}
	for _, peer := range peers {
		if peer.IPBlock != nil {
			if one.Address.IsValid() && within(peer.IPBlock, one.Address) {
				return true
			}
			continue // whether a block contains a pod's address depends on the cluster's network
		}
		if one.Address.IsValid() {
			continue
		}
		inNamespace := one.Namespace == home
		if peer.NamespaceSelector != nil {
			inNamespace = selects(peer.NamespaceSelector, map[string]string{corev1.LabelMetadataName: one.Namespace})
		}
		if inNamespace && (peer.PodSelector == nil || selects(peer.PodSelector, one.Labels)) {
			return true
		}
	}
	return false
}

func within(block *networkingv1.IPBlock, address netip.Addr) bool {
	if prefix, err := netip.ParsePrefix(block.CIDR); err != nil || !prefix.Contains(address) {
		return false
	}
	for _, except := range block.Except {
		if prefix, err := netip.ParsePrefix(except); err != nil || prefix.Contains(address) {
			return false
		}
	}
	return true
}

func open(ports []networkingv1.NetworkPolicyPort, port int32) bool {
	for _, one := range ports {
		tcp := one.Protocol == nil || *one.Protocol == corev1.ProtocolTCP
		if tcp && (one.Port == nil || one.Port.IntVal == port) {
			return true
		}
	}
	return len(ports) == 0
}

func selects(selector *metav1.LabelSelector, of map[string]string) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(of))
}
